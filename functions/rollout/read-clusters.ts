import type { Known } from "#functions/rollout/read-subject.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { withEffectiveValues } from "#shared/adapters/cluster-values.ts";
import { isSameLeg } from "#shared/fleet/rollout/legs.ts";
import { arrivalStates, clusterOf, keys, syncName } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { ArrivalRow, SlotRow, TargetRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type NewerRow, newerRowText, type Row, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** Of one that only a newer version can read it is not known who has it. */
export type FoundLease = LeaseRow | NewerRow;

/** What there is of one cluster, as far as it was asked for. */
export interface ClusterRows {
  readonly cluster: string;
  /** Absent: it is not registered. */
  readonly fleet?: FleetRow | undefined;
  readonly slot?: SlotRow | undefined;
  readonly lease?: FoundLease | undefined;
  readonly arrivals: readonly ArrivalRow[];
  /** Every Sync of the subject, also of templates that are gone. */
  readonly syncs: readonly SyncRow[];
  /** Of the legs that are under way. */
  readonly targets: readonly TargetRow[];
  /** Of what its stage, or another, has passed last, where that left it behind. */
  readonly left: readonly TargetRow[];
  /** Why some of it, other than the lease, is not here: only a newer version can read it. */
  readonly newer?: string | undefined;
}

type Part = "slot" | "lease" | "arrivals" | "syncs" | "targets" | "left";
type PartKey = RowKeyOf<"Slot" | "Lease" | "Arrival" | "SyncOnCluster" | "Target">;

/** Clusters by name, in their order, each with its entry in the fleet and the parts that are named. */
export async function readClusters(
  { subject, unit }: Pick<Known, "subject" | "unit">,
  { clusters, with: parts }: { readonly clusters: readonly string[]; readonly with: readonly Part[] },
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const keysOf: Readonly<Record<Part, (cluster: string) => readonly PartKey[]>> = {
    slot: (cluster) => [keys.slot(subject, cluster)],
    lease: (cluster) => [keys.lease(cluster)],
    arrivals: (cluster) => arrivalStates.map((state) => keys.arrival(subject, state, cluster)),
    syncs: (cluster) => syncKeys({ subject, unit }, cluster),
    targets: (cluster) => unit.stages.flatMap(({ moving }) => (moving ? [keys.target(subject, moving, cluster)] : [])),
    left: (cluster) => unit.stages.flatMap(({ passed }) => (passed ? [keys.target(subject, passed, cluster)] : [])),
  };
  const wanted = clusters.flatMap((cluster) => [
    keys.fleet(cluster),
    ...parts.flatMap((part) => keysOf[part](cluster)),
  ]);
  const found = Map.groupBy(await table.getMany(wanted, { newer: "kept" }), clusterOf);
  return new Map(clusters.map((cluster) => [cluster, rowsOf(cluster, found.get(cluster) ?? [], unit)]));
}

/** Of every Sync of the subject that a cluster may have. */
export function syncKeys({ subject, unit }: Pick<Known, "subject" | "unit">, cluster: string) {
  return unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name)));
}

/** For a step about them: it knows their arrivals, and leaves alone those that cannot be read. @returns the others. */
export async function seeClusters(
  transaction: Transaction,
  wanted: Parameters<typeof readClusters>[1],
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const found = await readClusters(transaction.known, wanted, table);
  for (const { cluster, arrivals, newer } of found.values()) {
    transaction.see(arrivals);
    if (newer !== undefined) transaction.cannotRead(cluster);
  }
  return new Map([...found].filter(([, { newer }]) => newer === undefined));
}

/** Of those that are registered the entries in the fleet with the values that count, by name. @throws StarlingError `NewerRow` */
export async function valuedEntries(
  clusters: Iterable<ClusterRows>,
  table: Table,
): Promise<ReadonlyMap<string, FleetRow>> {
  const entries = [...clusters].flatMap(({ fleet }) => fleet ?? []);
  return new Map((await withEffectiveValues(entries, table)).map((entry) => [entry.name, entry]));
}

/** It failed, or did not answer, when its leg was through with it. */
export function isBehind({ state }: TargetRow): boolean {
  return state === "Failed" || state === "Unreachable";
}

function rowsOf(cluster: string, rows: readonly Row[], { stages }: Pick<UnitRow, "stages">): ClusterRows {
  const isLease = (row: Row): row is FoundLease => keys.lease.parse(row) !== undefined;
  const targets = rows.filter((row) => isOfType(row, "Target"));
  const isOpen = ({ leg }: TargetRow) => stages.some(({ moving }) => isSameLeg(moving, leg));
  const newer = rows.find((row) => isNewer(row) && !isLease(row));
  return {
    cluster,
    fleet: rows.find((row) => isOfType(row, "Fleet")),
    slot: rows.find((row) => isOfType(row, "Slot")),
    lease: rows.find(isLease),
    arrivals: rows.filter((row) => isOfType(row, "Arrival")),
    syncs: rows.filter((row) => isOfType(row, "SyncOnCluster")),
    targets: targets.filter(isOpen),
    left: targets.filter((target) => !isOpen(target) && isBehind(target)),
    newer: newer === undefined ? undefined : newerRowText(newer),
  };
}
