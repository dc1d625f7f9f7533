import { withEffectiveValues } from "#shared/adapters/read-cluster-values.ts";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { digestsOf, type Renderings } from "#shared/fleet/rollout/decide.ts";
import { type ClusterRows, type FoundLease, isLeftBehind, type Known } from "#shared/fleet/rollout/facts.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { catchUpStates, clusterOfKey, keys, type Owner, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, SnapshotTarget, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText, type Row, type RowKeyOf, type RowRange } from "#shared/fleet/rows/row.ts";
import { isOfType, type RowOf } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

type Part = "slot" | "lease" | "catchUps" | "syncs" | "targets" | "left";

type PartKey = RowKeyOf<"Slot" | "Lease" | "CatchUp" | "SyncOnCluster" | "Target">;

/** Clusters by name, in their order, each with its entry in the fleet and the requested rows. */
export async function readClusters(
  { owner, rolloutState }: Pick<Known, "owner" | "rolloutState">,
  { clusters, with: parts }: { readonly clusters: readonly string[]; readonly with: readonly Part[] },
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const keysOf: Readonly<Record<Part, (cluster: string) => readonly PartKey[]>> = {
    slot: (cluster) => [keys.slot(owner, cluster)],
    lease: (cluster) => [keys.lease(cluster)],
    catchUps: (cluster) => catchUpStates.map((state) => keys.catchUp(owner, state, cluster)),
    syncs: (cluster) => syncKeys({ owner, rolloutState }, cluster),
    targets: (cluster) =>
      rolloutState.stages.flatMap(({ updatingTo }) => (updatingTo ? [keys.target(owner, updatingTo, cluster)] : [])),
    left: (cluster) =>
      rolloutState.stages.flatMap(({ passed }) => (passed ? [keys.target(owner, passed, cluster)] : [])),
  };
  const desired = clusters.flatMap((cluster) => [
    keys.fleet(cluster),
    ...parts.flatMap((part) => keysOf[part](cluster)),
  ]);
  const found = Map.groupBy(await table.getMany(desired, { newer: "kept" }), clusterOfKey);
  return new Map(clusters.map((cluster) => [cluster, rowsOf(cluster, found.get(cluster) ?? [], rolloutState)]));
}

/** Keys of every Sync of the owner that a cluster may have. */
export function syncKeys({ owner, rolloutState }: Pick<Known, "owner" | "rolloutState">, cluster: string) {
  return rolloutState.templates.map((name) => keys.sync(cluster, owner.namespace, syncName(owner, name)));
}

/** The entries of registered clusters with their effective values, by name. @throws StarlingError `NewerRow` */
export async function valuedEntries(
  clusters: Iterable<ClusterRows>,
  table: Table,
): Promise<ReadonlyMap<string, FleetRow>> {
  const entries = [...clusters].flatMap(({ fleet }) => fleet ?? []);
  return new Map((await withEffectiveValues(entries, table)).map((entry) => [entry.name, entry]));
}

function rowsOf(cluster: string, rows: readonly Row[], { stages }: Pick<RolloutStateRow, "stages">): ClusterRows {
  const isLease = (row: Row): row is FoundLease => keys.lease.parse(row) !== undefined;
  const targets = rows.filter((row) => isOfType(row, "Target"));
  const isOpen = ({ stageRun }: TargetRow) => stages.some(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const newer = rows.find((row) => isNewer(row) && !isLease(row));
  return {
    cluster,
    fleet: rows.find((row) => isOfType(row, "Fleet")),
    slot: rows.find((row) => isOfType(row, "Slot")),
    lease: rows.find(isLease),
    catchUps: rows.filter((row) => isOfType(row, "CatchUp")),
    syncs: rows.filter((row) => isOfType(row, "SyncOnCluster")),
    targets: targets.filter(isOpen),
    left: targets.filter((target) => !isOpen(target) && isLeftBehind(target)),
    newer: newer === undefined ? undefined : newerRowText(newer),
  };
}

/**
 * Rows about clusters, and the clusters of rows that only a newer version can read: these cost the others nothing.
 * @param range - with a limit: at most that many rows.
 */
export async function rowsAbout<Type extends "Slot" | "Target" | "CatchUp">(
  range: RowRange<Type> & { readonly limit?: number },
  table: Table,
): Promise<{ readonly rows: readonly RowOf<Type>[]; readonly unread: readonly string[] }> {
  const [rows, unread]: [RowOf<Type>[], string[]] = [[], []];
  if (range.limit === 0) return { rows, unread };
  for await (const row of allItems((start) => table.query<Type, "kept">({ ...range, newer: "kept", ...start }))) {
    if (isNewer(row)) unread.push(clusterOfKey(row));
    else rows.push(row);
    if (rows.length === range.limit) break;
  }
  return { rows, unread };
}

/** Renderings that the targets need. */
export async function readRenderings(targets: readonly SnapshotTarget[], table: Table): Promise<Renderings> {
  const inputs = new Set(targets.flatMap(digestsOf));
  const found = await table.getMany([...inputs].map(keys.rendering), { newer: "kept" });
  const rows = found.filter((row) => row.type === "Rendering");
  const newer = found.filter(isNewer).map((row) => [keys.rendering.read(row).input, newerRowText(row)] as const);
  return { rows: new Map(rows.map((row) => [row.input, row])), newer: new Map(newer) };
}

/** States in which the cluster has something of the Sync, or may have. */
export async function clustersWithSyncs(owner: Owner, table: Table): Promise<ReadonlySet<string>> {
  return new Set((await liveEntries(owner, table)).map(({ cluster }) => cluster));
}

/** Its Syncs of which a cluster has something, or may have. */
export async function liveEntries(owner: Owner, table: Table) {
  const entries = await stateEntries(owner, table);
  return entries.filter(({ state }) => state !== "Orphaned" && state !== "Gone");
}
