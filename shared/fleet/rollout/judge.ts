/**
 * Decides from observed facts about a cluster with a slot: only this module decides that a cluster has failed, when its
 * attempt ends, and when its slot can be released. Pure.
 */

import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Deadlines, Deciding, FoundLease, Known, SeenSlot, Verdict } from "#shared/fleet/rollout/facts.ts";
import { skippedText } from "#shared/fleet/rollout/gate-acts.ts";
import { isAfter } from "#shared/fleet/rollout/order.ts";
import { rejectedText, rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import { cordonOf, cordonText } from "#shared/fleet/rows/cordons-row.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { freezeOfAll, freezeText } from "#shared/fleet/rows/freezes-row.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { because, type StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { isAway, isDenied, isTooLate, type Paused, type SyncRow, waitsForTurn } from "#shared/fleet/rows/sync-row.ts";

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

/**
 * True when the cluster's worker has owed a report for as long as an attempt may take: it has not begun, or a check that
 * was due did not happen. Whether its zone is down, or only busy, is not known from these rows.
 */
export function isWorkerSilent(
  slot: Pick<SlotRow, "attempts" | "since">,
  syncs: readonly SyncRow[],
  clock: Deadlines & { readonly now: Date },
): boolean {
  if (clock.pausedAt !== undefined || clock.freezing?.freeze !== undefined) return false;
  const now = clock.now.toISOString();
  const open = syncs.filter((sync) => {
    const { name, desired, observed } = sync;
    const ofThis = observed?.attempt === desired.attempt ? observed : undefined;
    return slot.attempts[name] === desired.attempt && !isDone(sync, ofThis) && !isAway(sync);
  });
  const isLate = (sync: SyncRow) => {
    const isBegun = sync.observed?.attempt === sync.desired.attempt;
    const deadline = isBegun ? deadlineOf(sync, clock) : stuckAt(slot, syncs, clock);
    return deadline !== undefined && deadline <= now && (!isBegun || isCheckLate(sync, deadline));
  };
  return open.length > 0 && open.every(isLate);
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
  const isUnknown = paused === undefined ? isAway || isCutShort : waitsForTurn(paused);
  if ((isAfter({ desired }, current) || isUnknown) && (desired.preexisting === undefined || wasReady)) return false;
  return phase !== "Ready" && phase !== "Gone";
}

/** Whether the cluster's last assignments found it unhealthy. */
export function wasUnhealthy(syncs: readonly Pick<SyncRow, "desired">[]): boolean {
  return syncs.some(({ desired }) => desired.preexisting === true);
}

export function clockOf({ row }: Pick<Known, "row">, now: Date): Deadlines & { readonly now: Date } {
  const progressSeconds = secondsOf(relationOf(row).rollout.progressDeadline);
  const { suspended, resumed } = row.operations;
  return { now, progressSeconds, pausedAt: suspended?.at, resumedAt: resumed?.at };
}

/**
 * Releases slots of failed attempts, of attempts that nobody has begun and that may not begin any more, and of clusters
 * that a freeze has held for the time of an attempt, because others may need the slot.
 */
export function pausedFor(
  { slot, syncs, clock, verdict, skip }: Pick<SeenSlot, "slot" | "syncs" | "clock" | "verdict" | "skip">,
  { known, now, at }: Deciding,
): Paused | undefined {
  if (verdict.state === "Failed") return { reason: verdict.reason, at };
  if (verdict.state === "Assigned" && isOvertaken(slot, known))
    return { reason: "everything of it is to be deleted", at };
  const rejection = rejectionOf(known.rolloutState, slot.rollout);
  const isWaiting = verdict.state === "Assigned" && !isBegun(slot, syncs);
  if (isWaiting && rejection !== undefined)
    return { reason: `rollout ${slot.rollout} ${rejectedText(rejection)}`, at, rejected: true };
  if (isWaiting && skip !== undefined) return { reason: skippedText(skip), at, skip: true };
  // The deletion of an owner goes on in a cordoned cluster.
  const cordon = known.row.operations.deletion === undefined && cordonOf(known.cordons, slot.cluster, now);
  if (isWaiting && cordon) return { reason: cordonText(cordon), at, cordon: true };
  const freeze = clock.freezing?.freeze;
  if (verdict.state !== "Assigned" || freeze === undefined || stuckAt(slot, syncs, clock) > at) return undefined;
  const isForNobody = clock.pausedAt !== undefined || freezeOfAll(known.freezeState, now) !== undefined;
  return isForNobody ? undefined : { reason: freezeText(freeze), at, freeze: freeze.name };
}

/**
 * Seconds after a window has closed until the attempts count that no worker has begun. By then a worker that began just
 * before, by its own clock, has noted that in its lease.
 */
const closedSeconds = 120;

/** When attempts that no worker began before the closing of a window end. */
export function closedFrom(beginBefore: string): string {
  return later(beginBefore, closedSeconds);
}

/** The Syncs of a slot that no worker may begin any more, because the windows over the cluster have closed. */
export function closedIn({ attempts }: SlotRow, syncs: readonly SyncRow[], now: Date): readonly SyncRow[] {
  const before = new Date(now.getTime() - closedSeconds * 1000);
  const open = syncs.filter(({ name, desired, paused }) => paused === undefined && attempts[name] === desired.attempt);
  return open.filter((sync) => isTooLate(sync, before));
}

/** True when some Syncs of a slot that still counts can no longer begin. */
export function isClosed({ slot, syncs, verdict }: Pick<SeenSlot, "slot" | "syncs" | "verdict">, now: Date): boolean {
  return verdict.state === "Assigned" && closedIn(slot, syncs, now).length > 0;
}

/** When the slot is checked because the windows over its cluster have closed, or whether a worker has begun by then. */
export function closingOf({ attempts }: SlotRow, syncs: readonly SyncRow[], now: Date): string | undefined {
  const times = syncs.flatMap(({ name, desired, observed }) => {
    const { attempt, beginBefore } = desired;
    if (beginBefore === undefined || attempts[name] !== attempt || observed?.attempt === attempt) return [];
    return closedFrom(beginBefore);
  });
  const [first] = times.sort();
  return first === undefined || first > now.toISOString() ? first : later(now, closedSeconds);
}

/** The holder of the lease, or one that died with it, may have begun the Sync and not reported that yet. */
export function mayHaveBegun(lease: FoundLease | undefined, { namespace, name }: SyncRow): boolean {
  if (lease === undefined) return false;
  if (isNewer(lease)) return true;
  const { owner, begun } = lease;
  return owner !== undefined && (begun === undefined || begun.sync === `${namespace}/${name}`);
}

/** A worker has begun something of the slot. */
function isBegun({ attempts }: SlotRow, syncs: readonly SyncRow[]): boolean {
  return syncs.some(({ name, observed }) => observed !== undefined && observed.attempt === attempts[name]);
}

/** The whole owner is being deleted: nothing waits for other attempts, which may never end. */
function isOvertaken({ rollout }: SlotRow, { row, rolloutState, rollouts }: Known): boolean {
  return (
    row.operations.deletion !== undefined &&
    rollout !== rolloutState.last &&
    rollouts.get(rolloutState.last)?.plan.deletion !== undefined
  );
}

/** A hold without a deadline is no failure, and is waited for as long as an attempt may take. */
export function stuckAt(
  { since }: Pick<SlotRow, "since">,
  syncs: readonly SyncRow[],
  { resumedAt, freezing, progressSeconds }: Deadlines,
) {
  const starts = syncs.flatMap(({ desired }) => desired.startAt ?? []);
  const ends = [resumedAt, freezing?.releasedAt, freezing?.freeze?.at].filter((time) => time !== undefined);
  const [last = since] = [since, ...starts, ...ends].sort().reverse();
  return later(last, progressSeconds);
}

/**
 * An attempt of the slot ends without a report of its worker: it was forgotten with its Cluster, left to the cluster,
 * or paused because the slot had no room. The worker may assume for a while that the attempt continues.
 */
export function isCutShort({ slot, syncs, verdict }: Pick<SeenSlot, "slot" | "syncs" | "verdict">): boolean {
  if (verdict.state === "Assigned") return false;
  if (slot.unwritten === true) return true;
  return Object.entries(slot.attempts).some(([name, attempt]) => {
    const desired = syncs.find((sync) => sync.name === name)?.desired;
    return desired?.attempt !== attempt || desired.action === "orphan";
  });
}

export function isLive(lease: FoundLease, now: Date): boolean {
  return isNewer(lease) || (lease.leaseUntil ?? "") > now.toISOString();
}

/** The end of a lease is not reported. */
export function endOf(lease: FoundLease | undefined, now: Date): Pick<Verdict, "deadline"> | undefined {
  const isKnown = lease !== undefined && !isNewer(lease) && isLive(lease, now);
  return isKnown ? defined({ deadline: lease.leaseUntil }) : undefined;
}

export function isHandedBack(fence: number, lease: FoundLease | undefined, now: Date): boolean {
  return lease === undefined || !isLive(lease, now) || (!isNewer(lease) && lease.fence > fence);
}
