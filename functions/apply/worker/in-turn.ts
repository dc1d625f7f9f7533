/** Whose turn it is among the Syncs of a cluster that are due, and how long it lasts: pure functions over their rows. */

import { later } from "#shared/fleet/rows/due.ts";
import { isIdle, nextWork } from "#shared/fleet/rows/next-work.ts";
import { type Routine, routineAt } from "#shared/fleet/rows/routine.ts";
import { deathsAt, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";

/** So much longer one at which a worker died has to have waited to come before the others. */
const suspectSeconds = 300;
/** Below this a turn is spent on asking a slow cluster who it is. */
const shortestTurnMs = 20_000;
const mostDoublings = 6;
/** Sorts after every time. */
const afterAll = "~";

/**
 * New assignments first, each of which has one such turn; then the longest waiting: none can keep another from its turn,
 * for whoever waits comes to the front in the end, and whoever had its turn goes to the back. One at which a worker
 * died comes after all that were due by then, and gives as much of a start to later ones. Of those that were assigned
 * together what was never seen comes last: the others were applied before, and nobody knows what it does to a worker.
 * Among equals by name, so that every worker takes the same order.
 */
export function inTurn(
  due: readonly SyncRow[],
  clock: { readonly now: Date; readonly routine: Routine },
): readonly SyncRow[] {
  const placed = due.map((row) => ({
    row,
    place: [...placeOf(row, clock), row.observed?.at ?? afterAll, nameOf(row)].join(" "),
  }));
  return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ row }) => row);
}

function placeOf(
  row: SyncRow,
  { now, routine }: { readonly now: Date; readonly routine: Routine },
): readonly [rank: string, since: string] {
  const since = waitingSince(row, routine);
  const deaths = deathsAt(row, now);
  if (deaths !== undefined) return ["later", later(since > deaths.at ? since : deaths.at, suspectSeconds)];
  return [isNew(row) ? "first" : "later", since];
}

function waitingSince(row: SyncRow, routine: Routine): string {
  const { desired, observed } = row;
  if (observed === undefined || isNew(row)) return desired.assignedAt;
  return (isIdle(row) ? routineAt(row, routine) : nextWork(row)) ?? observed.at;
}

/** What is parked is not begun. */
function isNew({ desired, observed, paused }: SyncRow): boolean {
  return paused === undefined && observed?.attempt !== desired.attempt;
}

function nameOf({ namespace, name }: SyncRow): string {
  return `${namespace}/${name}`;
}

/**
 * When the turn of a Sync ends: it has its share of what is left of the run, all of it when nobody waits behind it. One
 * whose last turns were too short gets longer ones, up to the whole run; the others come before it in the next.
 * @param run.waiting - how many are still to have their turn in this run, this one included.
 */
export function endOfTurn(
  row: SyncRow,
  run: { readonly now: Date; readonly deadline: Date; readonly waiting: number },
): Date {
  const now = run.now.getTime();
  const { desired, observed } = row;
  const wasShort = observed?.attempt === desired.attempt && observed.reason === outOfTime.reason;
  const doublings = wasShort ? Math.min(observed.tries + 1, mostDoublings) : 0;
  const shareMs = Math.max((run.deadline.getTime() - now) / run.waiting, shortestTurnMs * 2 ** doublings);
  return new Date(Math.min(now + shareMs, run.deadline.getTime()));
}
