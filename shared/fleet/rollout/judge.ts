/** Decides from observed facts about a cluster with a slot: only this module decides that a cluster has failed. */

import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { isAfter } from "#shared/fleet/rollout/order.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { because, type StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { isAway, isDenied, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface Verdict {
  readonly state: "Waiting" | "Assigned" | "Succeeded" | "Failed" | "Unreachable";
  readonly reason: string;
  /** When the time of an Assigned cluster ends. */
  readonly deadline?: string;
}

/** The freezes of one cluster. */
export interface Freezing {
  /** The freeze that covers it now. */
  readonly freeze?: Freeze | undefined;
  /** When a freeze last released it. */
  readonly releasedAt?: string | undefined;
}

/** The facts that limit a cluster's time. */
export interface Deadlines {
  /** Seconds without progress. */
  readonly progressSeconds: number;
  /** The time of a suspension does not count: the present one, and when the last ended. */
  readonly pausedAt?: string | undefined;
  readonly resumedAt?: string | undefined;
  /** The time of a freeze does not count either. */
  readonly freezing?: Freezing | undefined;
}

/**
 * The state of an assigned cluster. Observations about other attempts are ignored: numbers, not clocks, decide what an
 * observation is about.
 * - every Sync is done with the assigned digest: Succeeded;
 * - a Sync Failed, or it began, was checked when it was due, and made no progress for too long: Failed;
 * - Assigned while a worker may write for any of its Syncs: an unreachable part stops no other;
 * - then Unreachable, or Waiting: it answers again, more has to be assigned than fitted, or its assignment is gone with
 *   its Cluster.
 * @param syncs - the cluster's Syncs that were found.
 */
export function judge(
  slot: Pick<SlotRow, "attempts" | "unwritten">,
  syncs: readonly SyncRow[],
  clock: Deadlines & { readonly now: Date },
): Verdict {
  const current = Object.entries(slot.attempts).map(([name, attempt]) => {
    const row = syncs.find((sync) => sync.name === name && sync.desired.attempt === attempt);
    return { row, observed: row?.observed?.attempt === attempt ? row.observed : undefined };
  });
  const failed = current.find((sync) => sync.observed?.phase === "Failed");
  if (failed?.observed !== undefined) return { state: "Failed", reason: reasonOf(failed.observed) };
  const open = current.filter((sync) => !isDone(sync.row, sync.observed));
  const active = open.flatMap(({ row }) => (row === undefined || isAway(row) ? [] : [row]));
  const [pending] = active;
  if (pending === undefined) return settled(slot, open);
  const reason = pending.observed?.attempt === pending.desired.attempt ? reasonOf(pending.observed) : workerAwaited;
  const now = clock.now.toISOString();
  const times = active.flatMap((row) => {
    const deadline = deadlineOf(row, clock);
    return deadline === undefined || (deadline <= now && isCheckLate(row, deadline)) ? [] : [deadline];
  });
  const [deadline] = times.sort();
  if (deadline !== undefined && deadline <= now)
    return { state: "Failed", reason: because("DeadlineExceeded", reason) };
  return { state: "Assigned", reason, ...defined({ deadline }) };
}

/** True when a due check did not happen: progress since then is unknown. */
function isCheckLate({ observed }: SyncRow, deadline: string): boolean {
  return observed?.nextAt !== undefined && observed.nextAt < deadline;
}

/** @param open - the slot's Syncs that are not done and that no worker writes any more. */
function settled(
  { unwritten }: Pick<SlotRow, "unwritten">,
  open: readonly { readonly observed: SyncRow["observed"] | undefined }[],
): Verdict {
  const unreachable = open.find(({ observed }) => observed?.phase === "Unreachable");
  if (unreachable?.observed !== undefined) return { state: "Unreachable", reason: reasonOf(unreachable.observed) };
  if (open.some(({ observed }) => observed === undefined))
    return { state: "Waiting", reason: "its assignment is gone" };
  if (open.length > 0) return { state: "Waiting", reason: "answers again" };
  return unwritten === true
    ? { state: "Waiting", reason: "more is to be assigned" }
    : { state: "Succeeded", reason: "" };
}

const workerAwaited = "waiting for the cluster's worker";

function isDone(row: SyncRow | undefined, observed: SyncRow["observed"]): boolean {
  if (row?.desired.action === "orphan") return true;
  if (row === undefined || observed === undefined) return false;
  if (row.desired.action === "delete") return observed.phase === "Gone";
  // A Sync that was ready and does not answer since has reached its assignment.
  const wasReady = observed.phase === "Ready" || (observed.readyAt !== undefined && isAway(row));
  return wasReady && observed.applied?.renderDigest === row.desired.renderDigest;
}

/**
 * When the time of a Sync that its worker has begun ends; every progress begins it again. A Sync that no worker has
 * begun has no deadline, because the cause is the cluster's other work. A suspended or frozen Sync, and one whose store
 * denies access, has none either.
 */
export function deadlineOf(row: SyncRow | undefined, clock: Deadlines): string | undefined {
  const { observed, desired } = row ?? {};
  if (observed === undefined || observed.attempt !== desired?.attempt) return undefined;
  if (clock.pausedAt !== undefined || clock.freezing?.freeze !== undefined || isDenied(observed)) return undefined;
  const marks = [
    observed.startedAt,
    observed.progress?.at,
    observed.deniedAt,
    clock.resumedAt,
    clock.freezing?.releasedAt,
  ].filter((time) => time !== undefined);
  const last = marks.sort().at(-1) ?? observed.startedAt;
  return later(last, clock.progressSeconds);
}

/** The worst object, or the message about all. */
export function reasonOf(observed: NonNullable<SyncRow["observed"]>): string {
  const [worst] = observed.problems;
  if (worst !== undefined)
    return `${worst.object}: ${worst.reason}${worst.message === "" ? "" : ` (${worst.message})`}`;
  return observed.message === "" ? observed.reason : `${observed.reason}: ${observed.message}`;
}

/** True when the Sync is ready with this rendering and these options, and is kept so: nothing has to be assigned. */
export function isUnchanged(
  sync: SyncRow | undefined,
  desired: Pick<SyncRow["desired"], "renderDigest" | "apply">,
): boolean {
  if (sync === undefined || sync.paused !== undefined || !isNewestAssignment(sync, desired)) return false;
  return sync.observed?.attempt === sync.desired.attempt && sync.observed.phase === "Ready";
}

/** True when this is the Sync's last assignment, whatever its result. */
export function isNewestAssignment(
  sync: SyncRow,
  desired: Pick<SyncRow["desired"], "renderDigest" | "apply">,
): boolean {
  if (sync.desired.action !== "apply" || sync.desired.renderDigest !== desired.renderDigest) return false;
  // JSON.stringify does not serve here: DynamoDB returns the members of a map in its own order.
  return canonicalJson(sync.desired.apply) === canonicalJson(desired.apply);
}

/**
 * Reasons of objects that the attempt cannot help: the kind or Namespace is missing, or the object waits for others to
 * release it.
 */
const forOthersToRepair: ReadonlySet<string> = new Set([
  "KindUnavailable",
  "NoMatch",
  "NotFound",
  "Terminating",
  "Waiting",
] satisfies readonly StatedReason[]);

const deleting: ReadonlySet<string> = new Set([
  "Deleting",
  "DeletingHooks",
  "Pruning",
] satisfies readonly StatedReason[]);

/**
 * True when an attempt stands still, and nothing in it can help: every remaining object lacks its kind or its
 * Namespace, or is being deleted and held, by a finalizer or by an object before it. The attempt may still succeed
 * after others have acted.
 */
function isDoomed({ desired, observed }: SyncRow): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  const { phase, reason, problems } = observed;
  if (phase === "Applying" && reason === "Terminating") return true;
  const standsStill = phase === "Retrying" ? reason === "ApplyFailed" : phase === "Applying" && deleting.has(reason);
  return standsStill && problems.length > 0 && problems.every((problem) => forOthersToRepair.has(problem.reason));
}

/** The same for a cluster with a slot: for everything that is not done. */
export function areDoomed({ attempts }: Pick<SlotRow, "attempts">, syncs: readonly SyncRow[]): boolean {
  const own = syncs.filter(({ name, desired }) => attempts[name] === desired.attempt);
  const open = own.filter((sync) => !isDone(sync, sync.observed));
  return own.length === Object.keys(attempts).length && open.length > 0 && open.every(isDoomed);
}

/** True when another assignment may replace an attempt: nothing of it is applied, or everything that can be. */
export function isReplaceable(sync: SyncRow): boolean {
  const { desired, observed } = sync;
  return (
    observed?.attempt !== desired.attempt ||
    ["Verifying", "Ready"].includes(observed.phase) ||
    isDoomed(sync) ||
    (isDenied(observed) && observed.progress === undefined)
  );
}

/**
 * True when the cluster was unhealthy before, with a rollout that its stage had passed. Damage by a rollout that its
 * stage has not passed does not count, unless the rollout found the cluster unhealthy and never made it ready: then its
 * cures count as well.
 * @param on - the stage's current rollout.
 */
export function isPreexisting({ desired, observed, paused }: SyncRow, current: number | undefined): boolean {
  if (observed === undefined || current === undefined) return false;
  const { phase } = observed;
  const wasReady = observed.attempt === desired.attempt && observed.readyAt !== undefined;
  // A region that does not answer, or is held, is not unhealthy: the next rollout may break all of it. An attempt that
  // ended before its result was known counts neither.
  const isAway = phase === "Unreachable" || phase === "Reachable";
  const isCutShort = observed.attempt !== desired.attempt && phase !== "Failed" && observed.readyAt === undefined;
  const isUnknown = paused === undefined ? isAway || isCutShort : paused.freeze !== undefined;
  if ((isAfter({ desired }, current) || isUnknown) && (desired.preexisting === undefined || wasReady)) return false;
  return phase !== "Ready" && phase !== "Gone";
}

/** Whether the cluster's last assignments found it unhealthy. */
export function wasUnhealthy(syncs: readonly Pick<SyncRow, "desired">[]): boolean {
  return syncs.some(({ desired }) => desired.preexisting === true);
}
