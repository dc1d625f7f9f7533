/**
 * The routine of a cluster: all its Syncs that are at rest and have the same interval are looked at together. When that was
 * stands on the row of its lease, which is due for the next time; their own rows are left alone while nothing is new.
 */

import { hasCome, hashOf, later } from "#shared/fleet/rows/due.ts";
import { isIdle, nextWork } from "#shared/fleet/rows/next-work.ts";
import { intervalOf, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** By interval in seconds: when those that were at rest had all been looked at last. */
export type Routine = Readonly<Record<string, string>>;

type Resting = Pick<SyncRow, "cluster" | "desired" | "observed">;

/**
 * The routine of the Syncs that are at rest now. One that nobody has begun yet, as in a table of a version that had none,
 * goes by the one that was looked at longest ago. While one is on its way its interval stays: else the cluster's timer would
 * go and come again with every rollout.
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

/** Those whose time has come were looked at: the others stay. */
export function routineAfter(cluster: string, routine: Routine, now: Date): Routine {
  const entries = Object.entries(routine).map(([interval, at]) => {
    const isOver = hasCome(after(cluster, interval, at), now);
    return [interval, isOver ? now.toISOString() : at] as const;
  });
  return Object.fromEntries(entries);
}

/** When the cluster is looked at next. @returns undefined when nothing is at rest there. */
export function nextRoutine(cluster: string, routine: Routine): string | undefined {
  return Object.entries(routine)
    .map(([interval, at]) => after(cluster, interval, at))
    .sort()[0];
}

/** When the routine comes to a Sync that is at rest. */
export function routineAt(row: Resting, routine: Routine): string | undefined {
  const at = routine[intervalText(row)];
  return at === undefined ? undefined : after(row.cluster, intervalText(row), at);
}

/** Also of what had its turn before the others, in a run that was too short for all. */
export function isRoutineDue(row: Resting, routine: Routine, now: Date): boolean {
  const at = routineAt(row, routine);
  return hasCome(at, now) && at !== undefined && (row.observed?.at ?? "") < at;
}

/** Whether it is due since a whole interval: by then its look has given way for long enough. */
export function isRoutineLate(row: Resting, routine: Routine, now: Date): boolean {
  const at = routineAt(row, routine);
  return at !== undefined && isRoutineDue(row, routine, now) && hasCome(later(at, intervalOf(row.desired)), now);
}

/** When a Sync was last seen as its row says. */
export function lastCheck(row: SyncRow, routine: Routine = {}): string | undefined {
  const seen = row.observed?.at;
  const last = isIdle(row) ? routine[intervalText(row)] : undefined;
  return last !== undefined && seen !== undefined && last > seen ? last : seen;
}

function intervalText({ desired }: Pick<SyncRow, "desired">): string {
  return String(intervalOf(desired));
}

/** Of the way to the cluster's own place in the interval, which is half an interval at most. */
const nearerEachTime = 0.1;
const places = 10_000;

/**
 * An interval later, and each time nearer to the cluster's own place in it: a fleet that was rolled out at one instant, or
 * for which the timer was dead for a while, is spread over two thirds of the interval after ten looks, and in the end over
 * all of it. No look is earlier or later for that by more than 5 %.
 */
function after(cluster: string, interval: string, at: string): string {
  const seconds = Number(interval);
  const straight = Date.parse(at) / 1000 + seconds;
  const place = ((hashOf(`${cluster}${interval}`) % places) / places) * seconds;
  const ahead = (((place - straight) % seconds) + seconds) % seconds;
  const nearest = ahead > seconds / 2 ? ahead - seconds : ahead;
  return later(at, seconds + nearest * nearerEachTime);
}
