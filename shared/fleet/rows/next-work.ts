import { defined } from "#shared/base/defined.ts";
import { hasCome, jittered, later } from "#shared/fleet/rows/due.ts";
import {
  holdOf,
  intervalOf,
  isAsked,
  isAway,
  isPruneAsked,
  type Phase,
  type SyncRow,
  waitsForTurn,
} from "#shared/fleet/rows/sync-row.ts";

/** How often the worker checks whether a freeze still holds, in case the message about its end was lost. */
const heldSeconds = 300;
/** An idle Sync is checked with its cluster's routine. Its own timer is due this much later, in case the routine is lost. */
const ownSeconds = 86_400;

type Scheduled = Pick<SyncRow, "desired" | "observed" | "uid" | "reconcile" | "operations" | "held" | "paused">;

/**
 * When the cluster's worker should work on this Sync next; undefined when nothing is left to do.
 * A new assignment is due when it may begin. A settled one is due after its interval, for drift and health. A frozen one is
 * due when the freeze ends; a message about a thaw is worked on at once.
 */
export function nextWork(row: Scheduled): string | undefined {
  const wait = waitOf(row);
  return wait === "routine" ? afterInterval(row) : wait.at;
}

/** Whether the Sync waits for nothing but the routine of its cluster. */
export function isIdle(row: Scheduled): boolean {
  return waitOf(row) === "routine";
}

/** When the row of the Sync is due by its own timer. */
export function timerOf(row: Scheduled): string | undefined {
  const next = nextWork(row);
  return next !== undefined && isIdle(row) ? later(next, ownSeconds) : next;
}

type Wait = { readonly at: string | undefined } | "routine";

function waitOf(row: Scheduled): Wait {
  const { paused } = row;
  if (paused === undefined) return heldWait(row) ?? (isLeftToResume(row) ? { at: row.observed?.at } : checkWait(row));
  // Whether the cluster answers is asked as for one that did not answer.
  if (paused.zone !== undefined) return isAway(row) ? checkWait(row) : { at: paused.at };
  if (!waitsForTurn(paused)) return pausedWait({ ...row, paused });
  // A paused Sync answers requests only with its next turn.
  const { reconcile: _reconcile, operations: _operations, ...kept } = row;
  const unasked = { ...kept, ...defined({ reconcile: row.observed?.handledReconcile }) };
  return heldWait(unasked) ?? turnWait(unasked);
}

/** @returns undefined when no freeze holds the Sync, as far as the worker knows. */
function heldWait(row: Scheduled): Wait | undefined {
  const held = holdOf(row);
  if (held === undefined) return undefined;
  const check = isChecked(row) ? nextCheck(row) : undefined;
  const times = [later(held.at, heldSeconds), held.until, check];
  return { at: times.filter((time) => time !== undefined).sort()[0] };
}

/** Only the planner gives the Sync another turn. Until then the worker checks what was applied. */
function turnWait(row: Scheduled): Wait {
  const { observed } = row;
  if (isChecked(row)) return checkWait(row);
  const isApplied = observed?.applied !== undefined && observed.applied.attempt === observed.attempt;
  return isApplied ? "routine" : { at: undefined };
}

/** Whether the Sync is checked under a freeze: checks write nothing, but an unfinished apply waits. */
function isChecked({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  return observed.phase !== "Applying" && observed.phase !== "Retrying";
}

/** Such a Sync stays due, so that a resume does at once what a suspend has prevented. */
function isLeftToResume({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  return observed?.withheld !== undefined && observed.attempt === desired.attempt && desired.action !== "orphan";
}

/** When the Sync is due next if no freeze and no suspend applies. */
export function nextCheck(row: Omit<Scheduled, "held" | "paused">): string | undefined {
  const wait = checkWait(row);
  return wait === "routine" ? afterInterval(row) : wait.at;
}

function checkWait(row: Omit<Scheduled, "held" | "paused">): Wait {
  const { desired, observed } = row;
  if (desired.action === "orphan") return { at: undefined };
  if (observed === undefined || observed.attempt !== desired.attempt) return { at: beginsAt(row) };
  // Only the planner starts work: a cluster that answers again waits for an assignment.
  if (observed.phase === "Gone" || observed.phase === "Reachable") return { at: undefined };
  if (isAsked(row)) return { at: desired.assignedAt };
  if (observed.nextAt !== undefined) return { at: observed.nextAt };
  return isPruneAsked(row) ? { at: desired.assignedAt } : "routine";
}

/** The earliest time at which a worker begins the newest assignment. */
function beginsAt({ desired }: Pick<SyncRow, "desired">): string {
  return desired.startAt ?? desired.assignedAt;
}

/**
 * Whether a worker may begin the newest assignment. Without `startAt` it may at once: the clock that wrote `assignedAt`
 * may be ahead of the worker's, and a worker that left the assignment alone would leave it to the watchdog.
 */
export function mayBegin({ desired }: Pick<SyncRow, "desired">, now: Date): boolean {
  return desired.startAt === undefined || hasCome(desired.startAt, now);
}

/** Whether the worker works on this Sync now. A time that another function wrote as its present has come for every clock. */
export function isWorkDue(row: Scheduled, now: Date): boolean {
  const next = nextWork(row);
  if (next === undefined) return false;
  return hasCome(next, now) || next === row.desired.assignedAt || next === row.paused?.at;
}

/** The worker reports the pause at once. After that it checks the Sync like a settled one. */
function pausedWait(row: Scheduled & Required<Pick<SyncRow, "paused">>): Wait {
  const { desired, observed, paused } = row;
  if (desired.action === "orphan" || observed?.phase === "Gone") return { at: undefined };
  if (observed === undefined || isAsked(row)) return { at: paused.at };
  if (observed.attempt !== desired.attempt) {
    // Without anything applied there is nothing to check.
    return observed.applied?.attempt === observed.attempt ? "routine" : { at: paused.at };
  }
  if (observed.nextAt !== undefined) return { at: observed.nextAt };
  return idlesWhenPaused.has(observed.phase) ? "routine" : { at: paused.at };
}

const idlesWhenPaused: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Failed", "Unreachable"]);

/** @returns undefined when the Sync was never observed. */
function afterInterval({ desired, observed, uid }: Pick<SyncRow, "desired" | "observed" | "uid">): string | undefined {
  if (observed === undefined) return undefined;
  return later(observed.at, jittered(intervalOf(desired), `${uid}${observed.at}`));
}
