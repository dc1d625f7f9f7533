import type { Known } from "#functions/rollout/read-owner.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { withEffectiveValues } from "#shared/adapters/read-cluster-values.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { catchUpStates, clusterOfKey, keys, syncName } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutStateRow, SlotRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type NewerRow, newerRowText, type Row, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** The holder of a lease that only a newer version can read is unknown. */
export type FoundLease = LeaseRow | NewerRow;

/** The rows of one cluster, as far as they were asked for. */
export interface ClusterRows {
  readonly cluster: string;
  /** Absent when it is not registered. */
  readonly fleet?: FleetRow | undefined;
  readonly slot?: SlotRow | undefined;
  readonly lease?: FoundLease | undefined;
  readonly catchUps: readonly CatchUpRow[];
  /** Every Sync of the owner, including those of removed templates. */
  readonly syncs: readonly SyncRow[];
  /** Its targets in the stage runs in progress. */
  readonly targets: readonly TargetRow[];
  /** Its targets in the stage runs that passed last and left it behind, in its stage or another. */
  readonly left: readonly TargetRow[];
  /** Why some of the rows, other than the lease, are missing: only a newer version can read them. */
  readonly newer?: string | undefined;
}

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

/** For a step about clusters: it reads their catch-ups, and leaves unreadable clusters alone. @returns the others. */
export async function seeClusters(
  transaction: Transaction,
  desired: Parameters<typeof readClusters>[1],
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const found = await readClusters(transaction.known, desired, table);
  for (const { cluster, catchUps, newer } of found.values()) {
    transaction.see(catchUps);
    if (newer !== undefined) transaction.cannotRead(cluster);
  }
  return new Map([...found].filter(([, { newer }]) => newer === undefined));
}

/** The entries of registered clusters with their effective values, by name. @throws StarlingError `NewerRow` */
export async function valuedEntries(
  clusters: Iterable<ClusterRows>,
  table: Table,
): Promise<ReadonlyMap<string, FleetRow>> {
  const entries = [...clusters].flatMap(({ fleet }) => fleet ?? []);
  return new Map((await withEffectiveValues(entries, table)).map((entry) => [entry.name, entry]));
}

/** It failed, or did not answer, when its stage run had finished with it. */
export function isLeftBehind({ state }: TargetRow): boolean {
  return state === "Failed" || state === "Unreachable";
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
