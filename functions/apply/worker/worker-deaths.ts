/**
 * Workers that died, and the Sync at which each died: a worker that runs out of memory or time cannot report that. The
 * lease names what a worker begins, so the next holder of a lease that was not released knows where the last one died.
 * Pure functions over rows.
 */

import type { Lease } from "#functions/apply/lease/lease.ts";
import { isSuspended, type SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { defined } from "#shared/base/defined.ts";
import { backoffSecondsAfter, later } from "#shared/fleet/rows/due.ts";
import type { Begun } from "#shared/fleet/rows/lease-row.ts";
import { isIdle } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, clusterIdentity, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { deathsAt, desiredKey, isOfAnother, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Finding, observe } from "#shared/fleet/sync/observe.ts";

/** After this many deaths in a row, of workers that had begun nothing else, the Sync is the cause. */
const deathsToRest = 3;

export interface SyncTurn {
  readonly row: SyncRow;
  readonly owner: OwnerRow | undefined;
}

/** The turns of one pass. */
export interface Apart {
  readonly turns: readonly SyncTurn[];
  /** True when the invocation begins nothing else. */
  readonly alone: boolean;
  /** True when other Syncs are due and have to wait for another invocation. */
  readonly isMore: boolean;
}

/** @param run.isReported - true when each turn is noted on its own. */
export function begunAt(row: SyncRow, run: { readonly alone: boolean; readonly isReported: boolean }): Begun {
  const begun = { sync: nameOf(row), desired: desiredKey(row), attempt: row.desired.attempt, alone: run.alone };
  return isIdle(row) && !run.isReported ? { ...begun, routine: true } : begun;
}

/**
 * Whether the holder before died in the routine, where checks follow each other without a note. The cause is unknown
 * then: this time each check is noted, so that a second death names its Sync.
 */
export function isUnsure(turns: readonly SyncTurn[], { death }: Lease): boolean {
  if (death === undefined) return false;
  const waiting = turns.filter(({ owner }) => !isSuspended(owner));
  const isOfRoutine = death.begun === undefined ? waiting.slice(0, 1).some(rests) : death.begun.routine === true;
  return isOfRoutine && waiting.filter(rests).length > 1;
}

function rests({ row }: SyncTurn): boolean {
  return isIdle(row);
}

/**
 * The record of a death on the Sync at which the former holder died. Without a note it was the first Sync, since notes
 * go with what is written about earlier ones. A Sync that ran alone is the cause, and waits for a back-off in the end;
 * otherwise another Sync may be the cause.
 * @returns undefined when no worker died, or when another rendering is desired there by now.
 */
export function deathAmong(
  turns: readonly SyncTurn[],
  { death, fence }: Lease,
  { now, cluster }: { readonly now: Date; readonly cluster: ClusterRow },
): SyncOutcome | undefined {
  if (death === undefined) return undefined;
  const { begun } = death;
  const [first] = turns.filter(({ owner }) => !isSuspended(owner));
  const noted = turns.find(({ row }) => nameOf(row) === begun?.sync && desiredKey(row) === begun.desired);
  const row = (begun === undefined ? first : noted)?.row;
  if (row === undefined) return undefined;
  const wasAlone = begun?.alone === true;
  const alone = (deathsAt(row, now)?.alone ?? 0) + (wasAlone ? 1 : 0);
  const attempt = begun === undefined ? row.desired.attempt : begun.attempt;
  const deaths = { desired: desiredKey(row), ...defined({ attempt }), at: now.toISOString(), alone };
  const marked: SyncRow = { ...row, deaths };
  if (!wasAlone || alone < deathsToRest) return { row: marked, ...defined({ held: row.held }) };
  const { observed: _another, ...anew } = marked;
  const known = isOfAnother(marked, clusterIdentity(cluster)) ? anew : marked;
  return { row: marked, observed: observe(known, backoffFinding(alone, now), { now, fence }) };
}

function backoffFinding(deaths: number, now: Date): Finding {
  const seconds = backoffSecondsAfter(deaths - deathsToRest + 1);
  const found = `the function apply died ${deaths} times in a row at this Sync, and had begun nothing else`;
  const cause = "it ran out of memory or of time, most likely because the rendering is too large for it";
  const remedy = "split it into several Syncs, or give the function more memory (infra/wiring.ts)";
  const next = `it is tried again at ${later(now, seconds)}, and at once after another rendering or a reconcile`;
  return {
    phase: "Retrying",
    reason: "WorkerDied",
    message: `${found}: ${cause}; ${remedy}; ${next}`,
    backoffSecondsAfter: seconds,
  };
}

/**
 * The turns of this pass. A Sync at which a worker died is not worked on with others: it waits until it comes first,
 * and then has an invocation of its own.
 * @param turns - in their order.
 */
export function takenApart(
  turns: readonly SyncTurn[],
  { now, isFirst }: { readonly now: Date; readonly isFirst: boolean },
) {
  const isSuspect = ({ row }: SyncTurn) => deathsAt(row, now) !== undefined;
  const others = turns.filter((turn) => !isSuspect(turn));
  const waiting = turns.filter(({ owner }) => !isSuspended(owner));
  const [first] = waiting;
  const alone = isFirst && first !== undefined && isSuspect(first);
  if (alone) return { turns: [first], alone, isMore: waiting.length > 1 };
  return { turns: others, alone, isMore: waiting.some(isSuspect) };
}

/** The worker lives: the Sync only has to run alone for a while. */
export function survived(outcome: SyncOutcome, now: Date): SyncOutcome {
  if (outcome.observed === undefined) return outcome;
  const { deaths: _deaths, ...row } = outcome.row;
  const deaths = deathsAt(outcome.row, now);
  return { ...outcome, row: deaths === undefined ? row : { ...row, deaths: { ...deaths, alone: 0 } } };
}

function nameOf({ namespace, name }: SyncRow): string {
  return `${namespace}/${name}`;
}
