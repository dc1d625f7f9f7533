/**
 * The routine of a cluster: the worker checks all idle Syncs with the same interval together. The row of the lease records
 * when that was, and is due for the next time. The rows of the Syncs stay as they are while nothing is new.
 */

import { hasCome, hashOf, later } from "#shared/fleet/rows/due.ts";
import { isIdle, nextWork } from "#shared/fleet/rows/next-work.ts";
import { intervalOf, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** By interval in seconds: when the idle Syncs of that interval were last checked together. */
export type Routine = Readonly<Record<string, string>>;

type Resting = Pick<SyncRow, "cluster" | "desired" | "observed">;

/**
 * The routine of the Syncs that are idle now. A new interval begins with its Sync that was observed longest ago. An
 * interval stays while its Syncs have work to do; otherwise the cluster's timer would end and begin again with every
 * rollout.
 */
export function routineOf(syncs: readonly SyncRow[], known: Routine): Routine {
  const routine: Record<string, string> = {};
  for (const sync of syncs) {
    const interval = intervalText(sync);
    const at = isIdle(sync) ? sync.observed?.at : nextWork(sync) && known[interval];
    if (at === undefined) continue;
    const before = routine[interval] ?? at;
    routine[interval] = known[interval] ?? (at < before ? at : before);
  }
  return routine;
}

/** The routine after a check: the intervals that were due get the time `now`, and the others stay. */
export function routineAfter(cluster: string, routine: Routine, now: Date): Routine {
  const entries = Object.entries(routine).map(([interval, at]) => {
    const isOver = hasCome(after(cluster, interval, at), now);
    return [interval, isOver ? now.toISOString() : at] as const;
  });
  return Object.fromEntries(entries);
}

/** When the cluster is checked next. @returns undefined when no Sync is idle there. */
export function nextRoutine(cluster: string, routine: Routine): string | undefined {
  return Object.entries(routine)
    .map(([interval, at]) => after(cluster, interval, at))
    .sort()[0];
}

/** When the routine checks an idle Sync. */
export function routineAt(row: Resting, routine: Routine): string | undefined {
  const at = routine[intervalText(row)];
  return at === undefined ? undefined : after(row.cluster, intervalText(row), at);
}

/**
 * Whether the routine must still check the Sync; a run that was too short for all Syncs may have checked it already, and
 * a check within the slack before its time counts.
 */
export function isRoutineDue(row: Resting, routine: Routine, now: Date): boolean {
  const at = routineAt(row, routine);
  const { observed } = row;
  return hasCome(at, now) && (observed === undefined || !hasCome(at, new Date(observed.at)));
}

/** Whether the check is overdue by a whole interval, and must no longer make way for other work. */
export function isRoutineLate(row: Resting, routine: Routine, now: Date): boolean {
  const at = routineAt(row, routine);
  return at !== undefined && isRoutineDue(row, routine, now) && hasCome(later(at, intervalOf(row.desired)), now);
}

/** When a worker last confirmed the state that the row of a Sync shows. */
export function lastCheck(row: SyncRow, routine: Routine = {}): string | undefined {
  const seen = row.observed?.at;
  const last = isIdle(row) ? routine[intervalText(row)] : undefined;
  return last !== undefined && seen !== undefined && last > seen ? last : seen;
}

function intervalText({ desired }: Pick<SyncRow, "desired">): string {
  return String(intervalOf(desired));
}

/** The part of the way to the cluster's own place in the interval; that way is half an interval at most. */
const nearerEachTime = 0.1;
const places = 10_000;

/**
 * One interval later, and each time nearer to the cluster's own place in the interval. A fleet that was rolled out at one
 * instant, or whose timer did not run for a while, is spread over two thirds of the interval after ten checks, and finally
 * over all of it. This moves a check by at most 5 % of the interval.
 */
function after(cluster: string, interval: string, at: string): string {
  const seconds = Number(interval);
  const straight = Date.parse(at) / 1000 + seconds;
  const place = ((hashOf(`${cluster}${interval}`) % places) / places) * seconds;
  const ahead = (((place - straight) % seconds) + seconds) % seconds;
  const nearest = ahead > seconds / 2 ? ahead - seconds : ahead;
  return later(at, seconds + nearest * nearerEachTime);
}
