/** The steps of an apply, up to the point where it waits or fails, with the hooks for that case. */

import type { OperationResult } from "#functions/apply/steps/operation.ts";
import { type ApplyOrder, isInSteps } from "#functions/apply/steps/order-of-apply.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import type { StepWalk } from "#functions/apply/steps/walk-steps.ts";
import type { OrderProblem } from "#shared/kube/apply-steps.ts";
import type { HookRecord, InventoryChange } from "#shared/kube/inventory.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { reportedReason } from "#shared/kube/reasons.ts";

/** Runs everything before a prune. @returns the reason when it stopped earlier. */
export async function applyBefore(walk: StepWalk, order: ApplyOrder): Promise<OperationResult | undefined> {
  const deleted = await walk.deleteHooks();
  if (deleted !== undefined && deleted.outcome !== "done") {
    return pruneFinding(deleted, { waiting: "DeletingHooks", failed: "HookNotDeleted" });
  }
  const { failure } = walk.progress;
  if (failure !== undefined) return endFailed(walk, { order, failure });
  const last = order.after.length > 0 ? "awaited" : "left";
  return orFailing(walk, { order, found: await walk.over(order.before, { from: 0, last }) });
}

/** Runs everything after a prune. @returns the reason when it stopped earlier. */
export async function applyAfter(walk: StepWalk, order: ApplyOrder): Promise<OperationResult | undefined> {
  const found = await walk.over(order.after, { from: order.before.length, last: "left" });
  return (await orFailing(walk, { order, found })) ?? hooksToGo(walk);
}

/** After a final failure, runs and deletes the hooks for a failure first. */
function orFailing(
  walk: StepWalk,
  { order, found }: { readonly order: ApplyOrder; readonly found: OperationResult | undefined },
): OperationResult | undefined {
  if (found?.phase !== "Failed") return found;
  const [problem] = found.problems ?? [];
  const detail =
    problem === undefined || found.reason === "HookFailed" ? "" : `: ${problem.object}: ${problem.message}`;
  const before = walk.progress;
  walk.progress = { ...before, failure: { reason: found.reason, message: `${found.message}${detail}` } };
  if (order.onFailure.length > 0 || walk.hooksLeft().length > 0) {
    return { ...found, phase: "Applying", reason: "Failing", message: `${found.message}; its hooks end first` };
  }
  // A later check may find the failure fixed, except for a hook, which does not run twice.
  if (found.reason !== "HookFailed") walk.progress = before;
  return found;
}

async function endFailed(
  walk: StepWalk,
  {
    order,
    failure,
  }: { readonly order: ApplyOrder; readonly failure: { readonly reason: string; readonly message: string } },
): Promise<OperationResult> {
  const from = order.before.length + order.after.length;
  const found = await walk.over(order.onFailure, { from, last: "left" });
  if (found !== undefined && found.phase !== "Failed") return found;
  const message = found === undefined ? failure.message : `${failure.message}; ${found.message}`;
  return hooksToGo(walk) ?? { phase: "Failed", reason: reportedReason(failure.reason), message };
}

/** The next run deletes them, after their end is stored. */
function hooksToGo(walk: StepWalk): OperationResult | undefined {
  const left = walk.hooksLeft();
  if (left.length === 0) return undefined;
  return {
    phase: "Applying",
    reason: "DeletingHooks",
    message: `${left.length} hooks have ended and are deleted next`,
  };
}

/** What the inventory records. @param end - true when everything was applied: the next apply is no install. */
export function progressOfWalk(
  walk: StepWalk,
  order: ApplyOrder,
  end?: "whole",
): Pick<InventoryChange, "progress" | "hooks"> {
  const isKept = end === undefined && (walk.timeWasUp || isInSteps(order));
  const { renderDigest, event } = order.record;
  const record: HookRecord = {
    renderDigest,
    event: end === undefined ? event : "upgrade",
    succeeded: [...new Set(walk.succeeded)].sort(),
  };
  // Without a record, this rendering or the next would treat half of an install as an upgrade.
  const isReported = order.hooks.size > 0 || (end === undefined && event === "install");
  return { progress: isKept ? walk.progress : undefined, hooks: isReported ? record : undefined };
}

/** The rendering is older than the check of its order, or names an object that has another namespace here. */
export function misorderedFinding(misordered: readonly OrderProblem[]): OperationResult {
  const problems = misordered.map(({ object, annotation, reason }) => ({
    object: describeObject(objectIdOf(object)),
    reason: "OrderInvalid",
    message: `${annotation} ${reason}`,
  }));
  const [first] = problems;
  const message = `nothing was applied: ${first?.object}, ${first?.message}`;
  return { phase: "Failed", reason: "OrderInvalid", message, problems };
}
