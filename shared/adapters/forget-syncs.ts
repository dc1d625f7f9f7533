import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { isConflict, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { due, later } from "#shared/fleet/rows/due.ts";
import { keys, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import { believedSeconds } from "#shared/fleet/rows/lease-row.ts";
import { forgotten } from "#shared/fleet/rows/lineage.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import type { Table } from "#shared/ports.ts";

/** DynamoDB's limit of writes in one transaction. */
const transactionWrites = 100;
/** The planner and the cluster's worker write the same rows, each at most a few times. */
const forgetTries = 10;

interface ForgettingPorts {
  readonly table: Table;
  readonly clock: Clock;
}

/**
 * The rows of a cluster's Syncs, including forgotten ones.
 * @throws StarlingError `NewerRow`, unless the caller can continue without such rows.
 */
export async function syncsOn(
  table: Table,
  cluster: string,
  newer: "refused" | "left out" = "refused",
): Promise<readonly SyncRow[]> {
  const range = ranges.syncsOn(cluster);
  const reading = newer === "left out" ? { newer: "kept" as const } : {};
  const rows = await Array.fromAsync(allItems((start) => table.query({ ...range, ...reading, ...start })));
  return rows.filter((row) => row.type === "SyncOnCluster");
}

export function isAssigned(row: SyncRow): boolean {
  return row.desired.action !== "orphan";
}

/**
 * Reads everything that `forgetSyncs` writes, and the entry of the fleet, before anything else is written.
 * @returns the rows of its Syncs. @throws StarlingError `NewerRow`
 */
export async function requireForgettable(table: Table, cluster: string): Promise<readonly SyncRow[]> {
  await table.getMany([keys.fleet(cluster), keys.lease(cluster)]);
  return syncsOn(table, cluster);
}

/**
 * Forgets the assignments of a cluster that is gone or has become a different one. The rows and the lease stay because
 * of their numbers: if these began again, the cluster would refuse every Sync (`ClusterAhead`) after it is registered
 * again.
 * @param remedy - what to do when others constantly write the same rows.
 * @returns the number of Syncs. @throws StarlingError `Conflict`, with the remedy.
 */
export async function forgetSyncs(ports: ForgettingPorts, cluster: string, remedy: string): Promise<number> {
  await dismissWorker(cluster, ports);
  const forgotten = new Set<string>();
  for (let attempt = 1; attempt <= forgetTries; attempt++) {
    const syncs = (await syncsOn(ports.table, cluster)).filter((row) => isAssigned(row) || row.observed !== undefined);
    for (const sync of syncs) forgotten.add(sync.sk);
    const writes = syncs.map((sync) => ({
      put: forgottenRow(sync, ports.clock.now()),
      when: { version: sync.version },
    }));
    try {
      for (const part of inParts(writes, transactionWrites)) await ports.table.write(part);
      return forgotten.size;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  const message = `other writers changed the Syncs of Cluster ${cluster} at the same time; ${remedy}`;
  throw new StarlingError(message, { code: "Conflict", retry: "permanent" });
}

/**
 * Takes the lease from its worker. A worker writes no row without its lease, so that its observations cannot bring back
 * what was forgotten. It may still write to the cluster until it reads the rows again. Until then the lease stays taken
 * without an owner: no other worker begins, and the planner keeps the cluster's slot.
 */
async function dismissWorker(cluster: string, { table, clock }: ForgettingPorts): Promise<void> {
  const lease = await table.get(keys.lease(cluster));
  if (lease?.owner === undefined) return;
  const { owner: _owner, ...free } = lease;
  const read = later(clock.now(), believedSeconds);
  const leaseUntil = free.leaseUntil !== undefined && free.leaseUntil > read ? free.leaseUntil : read;
  try {
    // Each worker that takes the lease raises the version.
    const put = { ...due(free, leaseUntil), leaseUntil, version: lease.version + 1 };
    await table.write([{ put, when: { version: lease.version } }]);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/** Observations are forgotten, too, because a different cluster may be registered under this name next. */
function forgottenRow(row: SyncRow, now: Date): SyncRow {
  const { operations: _operations, ...kept } = due(row, undefined);
  return {
    ...withWorkerHalf(kept, { observed: undefined, held: row.held, deaths: row.deaths }),
    version: row.version + 1,
    desired: forgotten(row, now.toISOString()),
    stateSk: stateIndex.sk("Orphaned", row),
  };
}
