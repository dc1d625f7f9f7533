import type { SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { due, hasCome } from "#shared/fleet/rows/due.ts";
import { isIdle, timerOf } from "#shared/fleet/rows/next-work.ts";
import { isRoutineDue, type Routine } from "#shared/fleet/rows/routine.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Whether what is at rest is to be looked at: with the others of its cluster, or because its own row was due. */
export function isRestOver(row: SyncRow, { now, routine }: { readonly now: Date; readonly routine: Routine }): boolean {
  return isRoutineDue(row, routine, now) || isWoken(row, now);
}

function isWoken(row: SyncRow, now: Date): boolean {
  return hasCome(timerOf(row), now) || (row.dispatches ?? 0) > 0;
}

/**
 * Whether a look at a Sync at rest found nothing new: its row can stay as it is. That it was looked at stands with the
 * routine of its cluster.
 * @param next - the row as it would be written.
 */
export function isQuietCheck({ row, observed, held, cluster }: SyncOutcome, next: SyncRow, now: Date): boolean {
  if (observed === undefined || row.observed === undefined || held !== undefined || cluster !== undefined) return false;
  if (!isIdle(row) || !isIdle(next) || row.deaths !== undefined || row.held !== undefined) return false;
  // An older version of Starling had what holds drift in the index as ready.
  return row.stateSk === next.stateSk && hasItsTimer(row, now) && lasting(row.observed) === lasting(observed);
}

/** One that it did not get from its own halves, or whose time has come, would wake the cluster in vain. */
function hasItsTimer(row: SyncRow, now: Date): boolean {
  return row.dueKey === due(row, timerOf(row)).dueKey && !isWoken(row, now);
}

/** What is another at each look. */
function lasting({ at: _at, inspectedAt: _inspectedAt, tries: _tries, fence: _fence, ...rest }: Observed): string {
  return canonicalJson(rest);
}
