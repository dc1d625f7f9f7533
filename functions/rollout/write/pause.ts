/** Ends an unfinished attempt: nothing more is written for it, and its slot is kept until no worker can write. */

import type { Transaction } from "#functions/rollout/write/transaction.ts";
import type { SeenSlot } from "#shared/fleet/rollout/facts.ts";
import { isLive } from "#shared/fleet/rollout/judge-slot.ts";
import { followsText, mostAssignments } from "#shared/fleet/rollout/slot-portion.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";

/** No worker writes there any more until the planner assigns again. */
export function pauseSync(transaction: Transaction, sync: SyncRow, paused: Paused): void {
  const { observed, desired } = sync;
  // Observations of an earlier attempt tell nothing: no worker may begin this one any more.
  const isDone = observed?.attempt === desired.attempt && (observed.phase === "Ready" || observed.phase === "Gone");
  if (isDone) return;
  const row: SyncRow = { ...sync, paused };
  transaction.put<SyncRow>({ ...row, stateSk: stateIndex.sk(syncStateOf(row), row) }, sync);
}

/**
 * An older version of Starling let slots grow beyond one transaction. Such a slot keeps as many attempts as one has
 * now; the others are paused, and the next turn assigns them again.
 */
export function shrinkSlot(transaction: Transaction, { slot, syncs }: Pick<SeenSlot, "slot" | "syncs">): SlotRow {
  const paused = syncs.slice(mostAssignments, 2 * mostAssignments);
  for (const sync of paused) pauseSync(transaction, sync, { reason: followsText, at: transaction.at });
  const left = new Set(paused.map(({ name }) => name));
  const attempts = Object.fromEntries(Object.entries(slot.attempts).filter(([name]) => !left.has(name)));
  return transaction.putSlot({ ...slot, attempts, unwritten: true }, slot);
}

/**
 * Releases the slot when no worker that began before can still be working; otherwise the slot is kept until that worker
 * has finished.
 */
export function pauseSlot(transaction: Transaction, { slot, lease }: Pick<SeenSlot, "slot" | "lease">): void {
  if (lease !== undefined && isNewer(lease)) {
    transaction.putSlot({ ...slot, releasing: { fence: Number.MAX_SAFE_INTEGER } }, slot);
    return;
  }
  // A worker that takes the lease after this reads that nothing is to be written.
  const when = lease === undefined ? ("absent" as const) : { version: lease.version };
  transaction.write({ check: keys.lease(slot.cluster), when });
  if (lease !== undefined && isLive(lease, transaction.now))
    transaction.putSlot({ ...slot, releasing: { fence: lease.fence } }, slot);
  else transaction.dropSlot(slot);
}
