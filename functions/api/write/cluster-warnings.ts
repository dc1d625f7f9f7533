import { allPages } from "#shared/base/all-pages.ts";
import {
  type ClusterSelection,
  type SelectableCluster,
  selectionText,
  selects,
} from "#shared/fleet/kinds/cluster-selection.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/**
 * A selector without a matching cluster is no error, because clusters may be registered later. It is a warning, because
 * nothing happens until then.
 */
export async function clusterWarnings(
  table: Table,
  documents: readonly Document[],
): Promise<readonly (readonly string[])[]> {
  const selections = documents.map(selectionOf);
  const own = clustersInDocuments(documents);
  const missing = await missingOf(table, selections, new Set(own.map((cluster) => cluster.name)));
  const empty = await emptyOf(table, selections, own);
  return selections.map((selection, index) => {
    const names = missing[index] ?? [];
    if (names.length > 0) return [missingText(names, documents[index]?.kind)];
    if (selection === undefined || !empty.has(index)) return [];
    const none = `no registered cluster matches ${selectionText(selection)} yet`;
    return [isForOthers(documents[index]?.kind) ? none : `${none}: nothing is rolled out until one does`];
  });
}

/** Clusters that the documents register, with their future labels. */
export function clustersInDocuments(documents: readonly Document[]): readonly SelectableCluster[] {
  return documents.flatMap((document) =>
    document.kind === "Cluster"
      ? [
          {
            name: document.metadata.name,
            labels: clusterLabels({ labels: document.metadata.labels ?? {}, spec: document.spec }),
          },
        ]
      : [],
  );
}

/**
 * Reads the fleet page by page, as it will be once the documents are applied, until `settle` needs no more.
 * @param settle - @returns whether it needs more clusters.
 */
export async function readFleetUntil(
  table: Table,
  own: readonly SelectableCluster[],
  settle: (clusters: readonly SelectableCluster[]) => boolean,
): Promise<void> {
  if (!settle(own)) return;
  for await (const page of allPages((start) => table.query({ ...ranges.fleet, newer: "kept", ...start }))) {
    // Clusters that are written in the same request count with their future labels.
    const rows = page.filter((row) => row.type === "Fleet").filter((row) => !own.some(({ name }) => name === row.name));
    if (!settle(rows)) return;
  }
}

function selectionOf(document: Document): ClusterSelection | undefined {
  if (document.kind === "SyncGroup" || document.kind === "ClusterValues" || document.kind === "Window")
    return document.spec.clusters;
  return document.kind === "Sync" ? { names: [document.spec.cluster] } : undefined;
}

/** It rolls nothing out itself. */
function isForOthers(kind: Document["kind"] | undefined): boolean {
  return kind === "ClusterValues" || kind === "Window";
}

function missingText(names: readonly string[], kind: Document["kind"] | undefined): string {
  const one = names.length === 1;
  const missing = `${one ? "cluster" : "clusters"} ${names.join(", ")} ${one ? "is" : "are"} not registered yet`;
  if (isForOthers(kind)) return missing;
  return `${missing}: nothing is rolled out there until ${one ? "it is" : "they are"}`;
}

async function missingOf(
  table: Table,
  selections: readonly (ClusterSelection | undefined)[],
  own: ReadonlySet<string>,
): Promise<readonly (readonly string[])[]> {
  const desired = selections.map((selection) =>
    (selection?.names ?? []).filter((name) => !own.has(name) && selection?.notNames?.includes(name) !== true),
  );
  const distinct = [...new Set(desired.flat())];
  const fleetKeys = distinct.map((name) => keys.fleet(name));
  const rows = await table.getMany(fleetKeys, { newer: "kept" });
  const registered = new Set(rows.map(clusterOfKey));
  return desired.map((names) => names.filter((name) => !registered.has(name)));
}

/** Selectors without a cluster; the fleet is read only until each selector has found one. */
async function emptyOf(
  table: Table,
  selections: readonly (ClusterSelection | undefined)[],
  own: readonly SelectableCluster[],
): Promise<ReadonlySet<number>> {
  const open = new Map(
    [...selections.entries()].flatMap(([index, selection]) =>
      selection === undefined || selection.names !== undefined ? [] : [[index, selection] as const],
    ),
  );
  await readFleetUntil(table, own, (clusters) => {
    for (const [index, selection] of open) {
      if (clusters.some((cluster) => selects(selection, cluster))) open.delete(index);
    }
    return open.size > 0;
  });
  return new Set(open.keys());
}
