import { allPages } from "#shared/base/all-pages.ts";
import { due, dueAttributes, dueShard, dueShardCount, timerAttributes } from "#shared/fleet/rows/due.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import { nextRoutine } from "#shared/fleet/rows/routine.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { RowType, StoredRow } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

/** Later than any due time of a row. */
const never = "9999";

/**
 * Releases everything that a killed machine held: leases, fetches that had begun, and claims of renderings. Its
 * messages are lost, so the work that they announced is due now.
 *
 * Call this before the first function of a machine with its own folder, because then no earlier worker is still
 * running. Fences stay, so that newer workers still win over older ones. The counts of unfinished attempts stay, too.
 */
export async function releaseHolds(table: Table, now: Date): Promise<void> {
  const at = now.toISOString();
  const shards = Array.from({ length: dueShardCount }, (_, shard) => dueShard(shard));
  await Promise.all([releaseLeases({ table, at }), ...shards.map((shard) => releaseShard(shard, { table, at }))]);
}

/** Sets the timer of each lease. A killed holder may have removed all other timers of its cluster before it set this one. */
async function releaseLeases({ table, at }: Releasing): Promise<void> {
  const holding = ["owner", "leaseUntil", "begun", "failed"];
  for await (const entries of allPages((start) => table.query({ ...ranges.fleet, newer: "kept", ...start }))) {
    const leases = await table.getMany(
      entries.map((entry) => keys.lease(clusterOfKey(entry))),
      { newer: "kept" },
    );
    for (const lease of leases) {
      if (isNewer(lease)) continue;
      const next = lease.owner === undefined ? nextRoutine(clusterOfKey(lease), lease.routine ?? {}) : at;
      const timer = next === undefined ? {} : dueAttributes(lease, next);
      const remove = [...holding, ...timerAttributes.filter((name) => !(name in timer))];
      await table.update({ update: lease, set: { ...timer }, remove });
    }
  }
}

interface Releasing {
  readonly table: Table;
  /** ISO 8601. */
  readonly at: string;
}

async function releaseShard(pk: string, { table, at }: Releasing): Promise<void> {
  const waiting: StoredRow[] = [];
  for await (const entries of allPages((start) => table.queryIndex({ index: "due", pk, upTo: never, ...start }))) {
    const rows = await table.getMany<RowType, "kept">(
      entries.map(({ key }) => key),
      { newer: "kept" },
    );
    for (const row of rows) if (!isNewer(row)) waiting.push(row);
  }
  for (const row of waiting) await release(row, { table, at });
}

async function release(row: StoredRow, { table, at }: Releasing): Promise<void> {
  if (row.type === "Lease") return;
  const next = released(row, at);
  if (next === undefined) return;
  const put = { ...due(next, at), version: row.version + 1 };
  await table.write([{ put, when: { version: row.version } }]);
}

/** @returns undefined for a row that no worker held. */
function released(row: StoredRow, at: string): StoredRow | undefined {
  if (row.type === "Source" && row.status.fetch !== undefined) {
    return { ...row, status: { ...row.status, fetch: { ...row.status.fetch, until: at } } };
  }
  if (row.type === "Rendering" && row.claim !== undefined) return { ...row, claim: { ...row.claim, until: at } };
  return row.dispatches === undefined ? undefined : row;
}
