import { collect, keepsLabels, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { type ObjectReference, objectKey, objectText } from "#functions/api/reference.ts";
import { refusal } from "#functions/api/refusal.ts";
import {
  type ClusterObject,
  clusterObject,
  type SourceObject,
  type SyncGroupObject,
  sourceObject,
  syncGroupObject,
} from "#shared/domain/api/objects.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import type { ClusterRow, SourceRow, SyncGroupRow } from "#shared/domain/rows/object-rows.ts";
import { keyText, type Row, type RowKey } from "#shared/domain/rows/row.ts";
import type { Page, Table } from "#shared/ports.ts";

/** Sources of one namespace, or of all. */
export function listSources(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SourceObject>> {
  return collect(page, {
    read: (part) =>
      namespace === undefined
        ? readThroughDirectory(table, {
            pk: "SOURCES",
            part,
            target(entry) {
              const [ns = "", name = ""] = entry.sk.split("#");
              return keys.object(ns, "Source", name);
            },
          })
        : table.query({ pk: keys.object(namespace, "Source", "").pk, ...part }),
    keep: (row) => (keepsLabels(page, row as SourceRow) ? sourceObject(row as SourceRow) : undefined),
  });
}

/** SyncGroups of one namespace, or of all. */
export function listSyncGroups(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SyncGroupObject>> {
  return collect(page, {
    read: (part) =>
      namespace === undefined
        ? readThroughDirectory(table, {
            pk: "SUBJECTS",
            part,
            target(entry) {
              const [ns = "", kind, name = ""] = entry.sk.split("#");
              return kind === "SyncGroup" ? keys.object(ns, "SyncGroup", name) : undefined;
            },
          })
        : table.query({ pk: keys.object(namespace, "SyncGroup", "").pk, ...part }),
    keep: (row) => (keepsLabels(page, row as SyncGroupRow) ? syncGroupObject(row as SyncGroupRow) : undefined),
  });
}

export function listClusters(table: Table, page: PageRequest): Promise<ListPage<ClusterObject>> {
  return collect(page, {
    read: (part) => readThroughDirectory(table, { pk: "FLEET", part, target: (entry) => keys.cluster(entry.sk) }),
    keep: (row) => (keepsLabels(page, row as ClusterRow) ? clusterObject(row as ClusterRow) : undefined),
  });
}

/** @throws StarlingError `NotFound` */
export async function getObject(
  table: Table,
  reference: ObjectReference,
): Promise<SourceObject | ClusterObject | SyncGroupObject> {
  const row = await table.get<SourceRow | ClusterRow | SyncGroupRow>(objectKey(reference));
  if (row === undefined) throw refusal("NotFound", `${objectText(reference)} does not exist`);
  if (row.type === "Source") return sourceObject(row);
  return row.type === "Cluster" ? clusterObject(row) : syncGroupObject(row);
}

/** The rows a directory's entries stand for, in the directory's order. */
async function readThroughDirectory(
  table: Table,
  directory: {
    readonly pk: string;
    readonly part: { readonly limit: number; readonly after?: string };
    readonly target: (entry: Row) => RowKey | undefined;
  },
): Promise<Page<Row>> {
  const page = await table.query({ pk: directory.pk, ...directory.part });
  const targets = page.items.flatMap((entry) => directory.target(entry) ?? []);
  const rows = new Map((await table.getMany(targets)).map((row) => [keyText(row), row]));
  const items = targets.flatMap((key) => rows.get(keyText(key)) ?? []);
  return page.next === undefined ? { items } : { items, next: page.next };
}
