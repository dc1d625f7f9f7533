/** Writes a worker's observations into the rows under its lease, also when the planner wrote the rows meanwhile. */

import { type HeldLease, LeaseLost } from "#functions/apply/lease/held-lease.ts";
import { leaseCheck, leaseEnding, leaseNote, leaseRelease } from "#functions/apply/lease/lease.ts";
import { trimmedObservation } from "#functions/apply/worker/trimmed-observation.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { isConflict, isRowTooLarge } from "#shared/base/errors.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { Begun } from "#shared/fleet/rows/lease-row.ts";
import { timerOf } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, incarnationOf } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import { isOfType, type RowOf, type RowType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import type { Table, Write } from "#shared/ports.ts";

export async function commit(writes: readonly Write[], { lease }: HeldLease, table: Table): Promise<void> {
  if (writes.length > 0) await writeOver(writes, (attempt) => [...attempt, leaseCheck(lease)], table);
}

/**
 * Writes the last observation before the next Sync begins, together with the note of the next one, which costs no write
 * of its own. When nothing has to be written, the first Sync of a run goes without a note: a missing note means that it
 * was the first, or one of the routine. A Sync that must be distinguished gets its note.
 */
export async function commitAndBegin(
  writes: readonly Write[],
  {
    lease: held,
    begun,
    isReported,
  }: { readonly lease: HeldLease; readonly begun: Begun; readonly isReported: boolean },
  table: Table,
): Promise<void> {
  held.begun = begun;
  const note = leaseNote(held.lease, begun);
  if (writes.length > 0) await writeOver(writes, (attempt) => [...attempt, note], table);
  else if (isReported) await noteAlone(held, note, table);
}

async function noteAlone({ lease }: HeldLease, note: ReturnType<typeof leaseNote>, table: Table): Promise<void> {
  try {
    await table.update(note);
  } catch (error) {
    throw isConflict(error) ? new LeaseLost(lease, error) : error;
  }
}

/** @returns whether the lease was released. */
export async function commitAndRelease(writes: readonly Write[], held: HeldLease, table: Table): Promise<boolean> {
  const { lease, left, routine } = held;
  if (writes.length > 0) {
    try {
      await table.write([...writes, leaseRelease(left, routine)]);
      return true;
    } catch (error) {
      if (!isConflict(error) && !isRowTooLarge(error)) throw error;
    }
    await writeOver(writes, (attempt) => [...attempt, leaseEnding(lease)], table);
  }
  try {
    // A transaction would cost twice as much.
    await table.update(leaseRelease(left, routine));
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

const maxRewrites = 3;

/**
 * Writes an observation. When the planner assigned something newer meanwhile, the observation is written on top of it,
 * because the content of the cluster must be remembered whatever comes next. The observation is dropped when the lease
 * is lost, or when the row was forgotten, began anew, or was written by another worker or a newer version. When it does
 * not fit into the row, only its result is written. Facts about the cluster are written with it.
 */
async function writeOver(
  writes: readonly Write[],
  complete: (writes: readonly Write[]) => readonly Write[],
  table: Table,
): Promise<void> {
  let attempt = writes;
  for (let rewrite = 0; ; rewrite++) {
    try {
      return await table.write(complete(attempt));
    } catch (error) {
      if (rewrite === maxRewrites || !(isConflict(error) || isRowTooLarge(error))) throw error;
      attempt = isConflict(error) ? await rebase(attempt, table) : trimmedObservation(attempt, error);
      if (attempt.length === 0) return;
    }
  }
}

async function rebase(writes: readonly Write[], table: Table): Promise<readonly Write[]> {
  const rebased: Write[] = [];
  for (const write of writes) {
    if (!("put" in write)) continue;
    const mine = write.put;
    if (isOfType(mine, "Cluster")) rebased.push(...(await rebasedCluster(mine, table)));
    if (!isOfType(mine, "SyncOnCluster")) continue;
    const fresh = await readAgain(keys.sync(mine.cluster, mine.namespace, mine.name), table);
    const fence = mine.observed?.fence ?? 0;
    if (fresh === undefined || mine.observed === undefined || (fresh.observed?.fence ?? 0) > fence) continue;
    const isForgotten = fresh.desired.action === "orphan" && fresh.observed === undefined;
    if (isForgotten || isBegunAnew(fresh, mine)) continue;
    const { observed, held, deaths } = mine;
    const both = withWorkerHalf(fresh, { observed, held, deaths });
    const next: SyncRow = { ...both, version: fresh.version + 1, stateSk: stateIndex.sk(indexedState(both), fresh) };
    rebased.push({ put: due(next, timerOf(next), fresh.dispatches), when: { version: fresh.version } });
  }
  // The observation of a worker whose rows have another holder by now does not count.
  return rebased.some((write) => "put" in write && write.put.type === "SyncOnCluster") ? rebased : [];
}

/** @returns undefined also when only a newer version can read the row: that version handles it. */
async function readAgain<Type extends RowType>(key: RowKeyOf<Type>, table: Table): Promise<RowOf<Type> | undefined> {
  const found = await readRow(table, key);
  return found === undefined || isNewer(found) ? undefined : found;
}

/** Somebody accepted what the cluster remembers, or another object has the name. */
function isBegunAnew(fresh: SyncRow, mine: SyncRow): boolean {
  return fresh.ownerUid !== mine.ownerUid || fresh.recovered?.at !== mine.recovered?.at;
}

/** Without the identity, the new observation would be taken for that of another cluster. */
async function rebasedCluster(mine: ClusterRow, table: Table): Promise<readonly Write[]> {
  const fresh = await readAgain(keys.cluster(mine.name), table);
  if (fresh === undefined || incarnationOf(fresh) !== incarnationOf(mine)) return [];
  if (fresh.operations.accepted?.uid !== mine.operations.accepted?.uid) return [];
  const next: ClusterRow = { ...fresh, status: mine.status, version: fresh.version + 1 };
  return [{ put: next, when: { version: fresh.version } }];
}
