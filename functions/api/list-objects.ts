import type { ApiPorts } from "#functions/api/api-ports.ts";
import { readBrake } from "#functions/api/freezes.ts";
import { assignedTo, syncObjects } from "#functions/api/list-syncs.ts";
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
import { freezeOver } from "#shared/domain/rows/brake-row.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import type { ClusterRow, SourceRow, SyncGroupRow } from "#shared/domain/rows/object-rows.ts";
import { keyText, type Row, type RowKey } from "#shared/domain/rows/row.ts";
import type { SyncRow } from "#shared/domain/rows/sync-row.ts";
import type { Page, Table } from "#shared/ports.ts";

/** Clusters whose Syncs are read at once. */
const CLUSTERS_AT_ONCE = 16;

/** The installation is what the external ids of Clusters begin with. */
type Ports = Pick<ApiPorts, "table" | "installation" | "clock">;

/** Sources of one namespace, or of all. */
export function listSources(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SourceObject>> {
  return collect(page, {
    read: readNamespaced(table, {
      kind: "Source",
      namespace,
      pk: "SOURCES",
      target(entry) {
        const [ns = "", name = ""] = entry.sk.split("#");
        return keys.object(ns, "Source", name);
      },
    }),
    keep: (row) => (keepsLabels(page, row as SourceRow) ? sourceObject(row as SourceRow) : undefined),
  });
}

/** SyncGroups of one namespace, or of all. */
export function listSyncGroups(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SyncGroupObject>> {
  return collect(page, {
    read: readNamespaced(table, {
      kind: "SyncGroup",
      namespace,
      pk: "SUBJECTS",
      target(entry) {
        const [ns = "", kind, name = ""] = entry.sk.split("#");
        return kind === "SyncGroup" ? keys.object(ns, "SyncGroup", name) : undefined;
      },
    }),
    keep: (row) => (keepsLabels(page, row as SyncGroupRow) ? syncGroupObject(row as SyncGroupRow) : undefined),
  });
}

/** Clusters, each with how its Syncs are: one that answers and runs nothing as it should is not well. */
export async function listClusters(ports: Ports, page: PageRequest): Promise<ListPage<ClusterObject>> {
  const { table } = ports;
  const found = await collect(page, {
    read: (part) => readThroughDirectory(table, { pk: "FLEET", target: (entry) => keys.cluster(entry.sk) }, part),
    keep: (row) => (keepsLabels(page, row as ClusterRow) ? (row as ClusterRow) : undefined),
  });
  return { ...found, items: await withSyncs(ports, found.items) };
}

async function withSyncs({ table, installation, clock }: Ports, clusters: readonly ClusterRow[]) {
  const rows: SyncRow[] = [];
  for (let start = 0; start < clusters.length; start += CLUSTERS_AT_ONCE) {
    const part = clusters.slice(start, start + CLUSTERS_AT_ONCE);
    rows.push(...(await Promise.all(part.map(({ name }) => assignedTo(table, name)))).flat());
  }
  const byCluster = Map.groupBy(await syncObjects(table, rows), (sync) => sync.spec.cluster);
  const reading = await readBrake({ table });
  const now = clock.now();
  return clusters.map((row) => {
    const freeze = reading === undefined ? undefined : freezeOver(reading, row.labels, now);
    return clusterObject(row, installation, { syncs: byCluster.get(row.name) ?? [], freeze });
  });
}

/** @throws StarlingError `NotFound` */
export async function getObject(
  ports: Ports,
  reference: ObjectReference,
): Promise<SourceObject | ClusterObject | SyncGroupObject> {
  const row = await ports.table.get<SourceRow | ClusterRow | SyncGroupRow>(objectKey(reference));
  if (row === undefined) throw refusal("NotFound", `${objectText(reference)} does not exist`);
  if (row.type === "Source") return sourceObject(row);
  if (row.type === "SyncGroup") return syncGroupObject(row);
  const [cluster] = await withSyncs(ports, [row]);
  return cluster ?? clusterObject(row, ports.installation);
}

/** A part of a list, as a table takes it. */
type Part = Pick<PageRequest, "limit" | "after">;

interface Directory {
  readonly pk: string;
  readonly target: (entry: Row) => RowKey | undefined;
}

/** Reads the rows of one namespace, or of all through their directory. */
function readNamespaced(
  table: Table,
  list: Directory & { readonly kind: "Source" | "SyncGroup"; readonly namespace: string | undefined },
): (part: Part) => Promise<Page<Row>> {
  const { kind, namespace } = list;
  if (namespace === undefined) return (part) => readThroughDirectory(table, list, part);
  return (part) => table.query({ pk: keys.object(namespace, kind, "").pk, ...part });
}

/** The rows a directory's entries stand for, in the directory's order. */
async function readThroughDirectory(table: Table, directory: Directory, part: Part): Promise<Page<Row>> {
  const page = await table.query({ pk: directory.pk, ...part });
  const targets = page.items.flatMap((entry) => directory.target(entry) ?? []);
  const rows = new Map((await table.getMany(targets)).map((row) => [keyText(row), row]));
  const items = targets.flatMap((key) => rows.get(keyText(key)) ?? []);
  return page.next === undefined ? { items } : { items, next: page.next };
}
