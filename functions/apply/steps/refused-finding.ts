import { otherCluster } from "#functions/apply/steps/identity-finding.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { defined } from "#shared/base/defined.ts";
import type { ParentResult } from "#shared/kube/engine/ensure-parent.ts";
import type { PruneResult } from "#shared/kube/engine/prune-set.ts";

type Refused = Extract<ParentResult, { kind: "refused" }>;
type RefusedPrune = Extract<PruneResult, { outcome: "refused" }>;

/**
 * The cluster remembers something that forbids this attempt. Another cluster at the endpoint counts as unreachable:
 * nothing is written to it, and the rollout continues without it within its budget.
 */
export function refusedFinding(
  context: Pick<OperationContext, "clusterUid" | "row">,
  refusal: Omit<Refused, "kind" | "reason"> & Pick<Refused | RefusedPrune, "reason">,
): OperationResult {
  const { reason, message, remembered, clusterUid } = refusal;
  if (reason === "IdentityMismatch") return otherCluster(context, refusal.otherUid);
  return {
    phase: "Failed",
    reason,
    message,
    ...defined({ remembered, clusterUid }),
  };
}
