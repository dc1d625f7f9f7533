/** Observed facts -> the state of a target. The one place that says when a cluster has failed. */
import { canonicalJson } from "#shared/base/json.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { RolloutRow, TargetRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { isDenied, isOutstanding, isParked, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface Verdict {
  readonly state: TargetState;
  readonly reason: string;
}

/** What says until when a target has time. */
export type Deadlines = Pick<RolloutRow, "strategy" | "pausedAt" | "resumedAt">;

/**
 * What an assigned target has come to. Observations about other attempts are ignored: numbers, not clocks, decide what
 * an observation is about.
 * - every Sync done with the digest that was assigned: Succeeded;
 * - a Sync Failed, or the deadline passed: Failed; unreachable: Unreachable; else in progress, with the worst reason.
 * - answers again after it was unreachable, or its assignment is gone with a Cluster that was registered anew: Waiting.
 * @param syncs - the target's Syncs, those that were found.
 */
export function judge(
  target: TargetRow,
  syncs: readonly SyncRow[],
  clock: Deadlines & { readonly now: Date },
): Verdict {
  const current = Object.entries(target.attempts).map(([name, attempt]) => {
    const row = syncs.find((sync) => sync.name === name && sync.desired.attempt === attempt);
    return { row, observed: row?.observed?.attempt === attempt ? row.observed : undefined };
  });
  const failed = current.find((sync) => sync.observed?.phase === "Failed");
  if (failed?.observed !== undefined) return { state: "Failed", reason: reasonOf(failed.observed) };
  const unreachable = current.find((sync) => sync.observed?.phase === "Unreachable");
  if (unreachable?.observed !== undefined) return { state: "Unreachable", reason: reasonOf(unreachable.observed) };
  if (current.some((sync) => sync.row === undefined)) return { state: "Waiting", reason: "its assignment is gone" };
  if (current.some((sync) => sync.observed?.phase === "Reachable"))
    return { state: "Waiting", reason: "answers again" };
  const pending = current.find((sync) => !isDone(sync.row, sync.observed));
  if (pending === undefined) return { state: "Succeeded", reason: "" };
  const reason = pending.observed === undefined ? "waiting for the cluster's worker" : reasonOf(pending.observed);
  const late = current.some(({ row, observed }) => !isDone(row, observed) && isPast(target, observed, clock));
  if (late) return { state: "Failed", reason: `DeadlineExceeded: ${reason}` };
  if (current.every((sync) => sync.observed === undefined)) return { state: "Assigned", reason };
  const verifying = current.every((sync) => sync.observed?.phase === "Verifying" || isDone(sync.row, sync.observed));
  return { state: verifying ? "Verifying" : "Applying", reason };
}

function isDone(row: SyncRow | undefined, observed: SyncRow["observed"]): boolean {
  if (row?.desired.action === "orphan") return true;
  if (row === undefined || observed === undefined) return false;
  if (row.desired.action === "delete") return observed.phase === "Gone";
  return observed.phase === "Ready" && observed.applied?.renderDigest === row.desired.renderDigest;
}

function isPast(target: TargetRow, observed: SyncRow["observed"], clock: Deadlines & { readonly now: Date }): boolean {
  // The store denies what every worker needs: that says nothing of this cluster, and spends no deadline.
  if (clock.pausedAt !== undefined || isDenied(observed)) return false;
  const { deniedAt = "" } = observed ?? {};
  const from = { ...target, ...(deniedAt > (target.assignedAt ?? "") ? { assignedAt: deniedAt } : {}) };
  const deadline = deadlineOf(from, clock);
  return deadline !== undefined && deadline <= clock.now.toISOString();
}

/** True while the worker may be changing the cluster for the newest assignment. */
export function isChanging(row: SyncRow): boolean {
  return isOutstanding(row) && !isParked(row);
}

/** When an assigned target has used up its deadline; a suspension starts it anew. */
export function deadlineOf(target: Pick<TargetRow, "assignedAt">, clock: Deadlines): string | undefined {
  if (target.assignedAt === undefined) return undefined;
  const from =
    clock.resumedAt !== undefined && clock.resumedAt > target.assignedAt ? clock.resumedAt : target.assignedAt;
  return later(from, secondsOf(clock.strategy.progressDeadline));
}

function reasonOf(observed: NonNullable<SyncRow["observed"]>): string {
  const [worst] = observed.troubles;
  if (worst !== undefined)
    return `${worst.object}: ${worst.reason}${worst.message === "" ? "" : ` (${worst.message})`}`;
  return observed.message === "" ? observed.reason : `${observed.reason}: ${observed.message}`;
}

/** True when the Sync already holds this rendering with these options and is ready: nothing needs to be sent. */
export function isUnchanged(
  sync: SyncRow | undefined,
  wanted: Pick<SyncRow["desired"], "renderDigest" | "apply">,
): boolean {
  if (sync === undefined || sync.desired.action !== "apply" || sync.desired.renderDigest !== wanted.renderDigest)
    return false;
  // Not JSON.stringify: DynamoDB gives the members of a map back in an order of its own.
  if (canonicalJson(sync.desired.apply) !== canonicalJson(wanted.apply)) return false;
  return sync.observed?.attempt === sync.desired.attempt && sync.observed.phase === "Ready";
}

/**
 * True when the cluster was not ready before this rollout for a reason that is not a rollout under way: what the last
 * completed rollout gave it is not ready. A cluster that a halted rollout broke does not count.
 */
export function isPreexisting(sync: SyncRow | undefined, completed: number | undefined): boolean {
  if (sync?.observed === undefined || completed === undefined || sync.desired.rollout > completed) return false;
  return sync.observed.phase !== "Ready" && sync.observed.phase !== "Gone";
}
