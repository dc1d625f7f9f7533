import { defined } from "#shared/base/defined.ts";
import { jittered, later } from "#shared/fleet/rows/due.ts";
import { holdOf, intervalOf, isAsked, isPruneAsked, type Phase, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** How often is looked whether a freeze still holds, for messages that were lost. */
const heldSeconds = 300;
/** What is at rest is looked at with its cluster's routine; so long after that by its own timer, should that one be lost. */
const ownSeconds = 86_400;

type Scheduled = Pick<SyncRow, "desired" | "observed" | "uid" | "reconcile" | "operations" | "held" | "paused">;

/**
 * When the cluster's worker should look at this Sync next; undefined when there is nothing left to do.
 * A new assignment is due when it may begin; a settled one after its interval, for drift and health. What a freeze holds is
 * due when that ends; who is told of a thaw looks at once.
 */
export function nextWork(row: Scheduled): string | undefined {
  const wait = waitOf(row);
  return wait === "routine" ? afterInterval(row) : wait.at;
}

/** It waits for the routine of its cluster, and for nothing else. */
export function isIdle(row: Scheduled): boolean {
  return waitOf(row) === "routine";
}

/** When its row is due by itself. */
export function timerOf(row: Scheduled): string | undefined {
  const next = nextWork(row);
  return next !== undefined && isIdle(row) ? later(next, ownSeconds) : next;
}

type Wait = { readonly at: string | undefined } | "routine";

function waitOf(row: Scheduled): Wait {
  const { paused } = row;
  if (paused === undefined) return heldWait(row) ?? (isLeftToResume(row) ? { at: row.observed?.at } : checkWait(row));
  if (paused.freeze === undefined) return pausedWait({ ...row, paused });
  // What is asked of it is done with its next turn.
  const { reconcile: _reconcile, operations: _operations, ...kept } = row;
  const unasked = { ...kept, ...defined({ reconcile: row.observed?.handledReconcile }) };
  return heldWait(unasked) ?? turnWait(unasked);
}

/** @returns undefined for what no freeze holds, as far as the worker knows. */
function heldWait(row: Scheduled): Wait | undefined {
  const held = holdOf(row);
  if (held === undefined) return undefined;
  const check = isChecked(row) ? nextCheck(row) : undefined;
  const times = [later(held.at, heldSeconds), held.until, check];
  return { at: times.filter((time) => time !== undefined).sort()[0] };
}

/** Only the planner gives it another turn; until then what was applied is looked at. */
function turnWait(row: Scheduled): Wait {
  const { observed } = row;
  if (isChecked(row)) return checkWait(row);
  const isApplied = observed?.applied !== undefined && observed.applied.attempt === observed.attempt;
  return isApplied ? "routine" : { at: undefined };
}

/** Looks that write nothing go on under a freeze; what is only begun waits. */
function isChecked({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  return observed.phase !== "Applying" && observed.phase !== "Retrying";
}

/** Due all the time, so that a resume does at once what a suspend kept from being done. */
function isLeftToResume({ desired, observed }: Pick<SyncRow, "desired" | "observed">): boolean {
  return observed?.withheld !== undefined && observed.attempt === desired.attempt && desired.action !== "orphan";
}

/** Whatever a freeze or a suspend says. */
export function nextCheck(row: Omit<Scheduled, "held" | "paused">): string | undefined {
  const wait = checkWait(row);
  return wait === "routine" ? afterInterval(row) : wait.at;
}

function checkWait(row: Omit<Scheduled, "held" | "paused">): Wait {
  const { desired, observed } = row;
  if (desired.action === "orphan") return { at: undefined };
  if (observed === undefined || observed.attempt !== desired.attempt) return { at: beginsAt(row) };
  // Only the planner starts anything: what answers again waits for its word.
  if (observed.phase === "Gone" || observed.phase === "Reachable") return { at: undefined };
  if (isAsked(row)) return { at: desired.assignedAt };
  if (observed.nextAt !== undefined) return { at: observed.nextAt };
  return isPruneAsked(row) ? { at: desired.assignedAt } : "routine";
}

/** Nobody begins the newest assignment before. */
export function beginsAt({ desired }: Pick<SyncRow, "desired">): string {
  return desired.startAt ?? desired.assignedAt;
}

/** That it is parked is told at once; from then on it is looked at like what is settled. */
function pausedWait(row: Scheduled & Required<Pick<SyncRow, "paused">>): Wait {
  const { desired, observed, paused } = row;
  if (desired.action === "orphan" || observed?.phase === "Gone") return { at: undefined };
  if (observed === undefined || isAsked(row)) return { at: paused.at };
  if (observed.attempt !== desired.attempt) {
    // Nothing that is looked at is left of what was wanted before.
    return observed.applied?.attempt === observed.attempt ? "routine" : { at: paused.at };
  }
  if (observed.nextAt !== undefined) return { at: observed.nextAt };
  return idlesWhenPaused.has(observed.phase) ? "routine" : { at: paused.at };
}

const idlesWhenPaused: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Failed", "Unreachable"]);

/** @returns undefined for what was never looked at. */
function afterInterval({ desired, observed, uid }: Pick<SyncRow, "desired" | "observed" | "uid">): string | undefined {
  if (observed === undefined) return undefined;
  return later(observed.at, jittered(intervalOf(desired), `${uid}${observed.at}`));
}
