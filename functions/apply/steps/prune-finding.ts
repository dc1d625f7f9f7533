import type { OperationResult } from "#functions/apply/steps/operation.ts";
import { counted } from "#shared/base/counted.ts";
import type { StatedProblem, StateReason } from "#shared/fleet/rows/stated-reason.ts";
import { longestAskedOf } from "#shared/kube/engine/object-failure.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import type { PruneResult } from "#shared/kube/engine/prune-set.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import type { AnyReason, Reason } from "#shared/kube/reasons.ts";

/** Deletions that have not ended: they wait for finalizers, or were refused for now, or for good. */
export function pruneFinding(
  pruned: PruneResult,
  reasons: { readonly waiting: AnyReason | StateReason; readonly failed: Reason },
): OperationResult {
  if (pruned.outcome === "refused") return { phase: "Failed", reason: pruned.reason, message: pruned.message };
  const left = pruned.objects.filter(({ outcome }) => ["held", "terminating", "waiting", "failed"].includes(outcome));
  const problems = left.map(
    ({ id, outcome, message, failure }): StatedProblem => ({
      object: describeObject(id),
      reason: failure?.reason ?? (outcome === "terminating" ? "Terminating" : "Waiting"),
      message: failure?.message ?? message ?? "",
    }),
  );
  const message = `${counted(left.length, "object")} still to be deleted`;
  if (pruned.outcome === "waiting" && pruned.timeWasUp)
    return { phase: "Applying", reason: outOfTime.reason, message: `${message}: ${outOfTime.message}` };
  if (pruned.outcome === "waiting") return { phase: "Applying", reason: reasons.waiting, message, problems };
  const asked = longestAskedOf(left.flatMap(({ failure }) => failure ?? []));
  const final = left.some(({ failure }) => failure !== undefined && !failure.retryable);
  return { phase: final ? "Failed" : "Retrying", reason: reasons.failed, message, problems, ...asked };
}
