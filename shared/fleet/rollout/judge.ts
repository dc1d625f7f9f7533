/** Observed facts -> what became of a cluster that has a slot. The one place that says when a cluster has failed. */

import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { because, type StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { isAway, isDenied, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface Verdict {
  readonly state: "Waiting" | "Assigned" | "Succeeded" | "Failed" | "Unreachable";
  readonly reason: string;
  /** When what is Assigned has used up its time. */
  readonly deadline?: string;
}

/** What the brake says of one cluster. */
export interface Freezing {
  /** That holds it now. */
  readonly freeze?: Freeze | undefined;
  /** When one let go of it last. */
  readonly releasedAt?: string | undefined;
}

/** What says until when a cluster has time. */
export interface Deadlines {
  /** Without progress. */
  readonly progressSeconds: number;
  /** A suspension spends no deadline: the one that goes on, and when the last ended. */
  readonly pausedAt?: string | undefined;
  readonly resumedAt?: string | undefined;
  /** Nor does a freeze. */
  readonly freezing?: Freezing | undefined;
}

/**
 * What an assigned cluster has come to. Observations about other attempts are ignored: numbers, not clocks, decide what
 * an observation is about.
 * - every Sync done with the digest that was assigned: Succeeded;
 * - a Sync Failed, or begun, looked at when that was due, and without progress for too long: Failed;
 * - Assigned as long as a worker may write for any of its Syncs: that one part does not answer stops no other;
 * - then Unreachable, or Waiting: answers again, more is to be assigned than fitted, or its assignment is gone with its Cluster.
 * @param syncs - the cluster's Syncs, those that were found.
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

/** True when nobody came to look who was to look before: what is gone forward since is not known yet. */
function isCheckLate({ observed }: SyncRow, deadline: string): boolean {
  return observed?.nextAt !== undefined && observed.nextAt < deadline;
}

/** @param open - its Syncs that are not done, for none of which a worker writes. */
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
  // What was seen ready and does not answer since was brought there all the same.
  const wasReady = observed.phase === "Ready" || (observed.readyAt !== undefined && isAway(row));
  return wasReady && observed.applied?.renderDigest === row.desired.renderDigest;
}

/**
 * When a Sync that its worker has begun has used up its time; it has it anew with everything that goes forward. What no
 * worker has begun has none: that is about whoever works on the cluster. Nor has what stands still, or is denied by the store.
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

/** The worst object, or what is said of all. */
export function reasonOf(observed: NonNullable<SyncRow["observed"]>): string {
  const [worst] = observed.problems;
  if (worst !== undefined)
    return `${worst.object}: ${worst.reason}${worst.message === "" ? "" : ` (${worst.message})`}`;
  return observed.message === "" ? observed.reason : `${observed.reason}: ${observed.message}`;
}

/** True when the Sync has this rendering with these options, is ready, and is kept so: nothing needs to be sent. */
export function isUnchanged(
  sync: SyncRow | undefined,
  desired: Pick<SyncRow["desired"], "renderDigest" | "apply">,
): boolean {
  if (sync === undefined || sync.paused !== undefined || !isNewestAssignment(sync, desired)) return false;
  return sync.observed?.attempt === sync.desired.attempt && sync.observed.phase === "Ready";
}

/** True when this is what the Sync was given last, whatever became of it. */
export function isNewestAssignment(
  sync: SyncRow,
  desired: Pick<SyncRow["desired"], "renderDigest" | "apply">,
): boolean {
  if (sync.desired.action !== "apply" || sync.desired.renderDigest !== desired.renderDigest) return false;
  // Not JSON.stringify: DynamoDB gives the members of a map back in an order of its own.
  return canonicalJson(sync.desired.apply) === canonicalJson(desired.apply);
}

/** What is said of an object that the attempt cannot help: its kind or Namespace is missing, or it waits for others to let go. */
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
 * True when an attempt stands still, and nothing in it can help: every object that is left lacks its kind or its Namespace, or
 * is being deleted and held, by a finalizer or by what goes before it. It may be done all the same, when others have done their part.
 */
function isDoomed({ desired, observed }: SyncRow): boolean {
  if (observed?.attempt !== desired.attempt) return false;
  const { phase, reason, problems } = observed;
  if (phase === "Applying" && reason === "Terminating") return true;
  const standsStill = phase === "Retrying" ? reason === "ApplyFailed" : phase === "Applying" && deleting.has(reason);
  return standsStill && problems.length > 0 && problems.every((problem) => forOthersToRepair.has(problem.reason));
}

/** The same of a cluster that has a slot: of everything that is not done. */
export function areDoomed({ attempts }: Pick<SlotRow, "attempts">, syncs: readonly SyncRow[]): boolean {
  const own = syncs.filter(({ name, desired }) => attempts[name] === desired.attempt);
  const open = own.filter((sync) => !isDone(sync, sync.observed));
  return own.length === Object.keys(attempts).length && open.length > 0 && open.every(isDoomed);
}

/** True when something else may take the place of an attempt: nothing of it is applied, or everything is that can be. */
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
 * True when the cluster was not ready before, on a content that its stage had passed. What a content broke that its stage
 * has not passed does not count, unless it found the cluster like that, and never made it ready: then each of its cures does, too.
 * @param on - what the stage passed last.
 */
export function isPreexisting({ desired, observed, paused }: SyncRow, current: number | undefined): boolean {
  if (observed === undefined || current === undefined) return false;
  const { phase } = observed;
  const wasReady = observed.attempt === desired.attempt && observed.readyAt !== undefined;
  // A region that does not answer, or stands still, is not sick by that: what comes next may break all of it. Nor is whose
  // attempt was taken from it before anything was found out.
  const isAway = phase === "Unreachable" || phase === "Reachable";
  const isCutShort = observed.attempt !== desired.attempt && phase !== "Failed" && observed.readyAt === undefined;
  const isUnknown = paused === undefined ? isAway || isCutShort : paused.freeze !== undefined;
  if ((desired.rollout > current || isUnknown) && (desired.preexisting === undefined || wasReady)) return false;
  return phase !== "Ready" && phase !== "Gone";
}

/** Of a cluster by its Syncs: what was assigned last found it like that. */
export function wasUnhealthy(syncs: readonly Pick<SyncRow, "desired">[]): boolean {
  return syncs.some(({ desired }) => desired.preexisting === true);
}
