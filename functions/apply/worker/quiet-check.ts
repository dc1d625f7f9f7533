import type { SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { due, hasCome } from "#shared/fleet/rows/due.ts";
import { isIdle, timerOf } from "#shared/fleet/rows/next-work.ts";
import { isRoutineDue, type Routine } from "#shared/fleet/rows/routine.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Whether an idle Sync is checked: together with the others of its cluster, or because its own row was due. */
export function isRestOver(row: SyncRow, { now, routine }: { readonly now: Date; readonly routine: Routine }): boolean {
  return isRoutineDue(row, routine, now) || isWoken(row, now);
}

function isWoken(row: SyncRow, now: Date): boolean {
  return hasCome(timerOf(row), now) || (row.dispatches ?? 0) > 0;
}

/**
 * Whether a check of an idle Sync found nothing new, so that its row can stay. The routine of its cluster records the
 * check.
 * @param next - the row as it would be written.
 */
export function isQuietCheck({ row, observed, held, cluster }: SyncOutcome, next: SyncRow, now: Date): boolean {
  if (observed === undefined || row.observed === undefined || held !== undefined || cluster !== undefined) return false;
  if (!isIdle(row) || !isIdle(next) || row.deaths !== undefined || row.held !== undefined) return false;
  // An older version of Starling indexed a Sync with drift as ready.
  return row.stateSk === next.stateSk && hasItsTimer(row, now) && lasting(row.observed) === lasting(observed);
}

/** A timer that the row did not set itself, or whose time has come, would wake the cluster in vain. */
function hasItsTimer(row: SyncRow, now: Date): boolean {
  return row.dueKey === due(row, timerOf(row)).dueKey && !isWoken(row, now);
}

/** Fields that differ at each check. */
function lasting({ at: _at, inspectedAt: _inspectedAt, tries: _tries, fence: _fence, ...rest }: Observed): string {
  return canonicalJson(rest);
}
