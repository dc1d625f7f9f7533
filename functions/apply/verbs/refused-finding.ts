import type { ParentRefusal } from "#functions/apply/engine/ensure-parent.ts";
import { otherCluster } from "#functions/apply/verbs/identity-finding.ts";
import type { VerbContext, VerbResult } from "#functions/apply/verbs/verb.ts";

/**
 * The cluster remembers something that forbids this attempt. Another cluster behind the endpoint counts as unreachable:
 * nothing is written to it, and the rollout goes on without it within its budget.
 */
export function refusedFinding(
  context: Pick<VerbContext, "clusterUid" | "row">,
  refusal: { readonly reason: ParentRefusal; readonly message: string; readonly otherUid?: string },
): VerbResult {
  if (refusal.reason === "IdentityMismatch") return otherCluster(context, refusal.otherUid);
  return { phase: "Failed", reason: refusal.reason, message: refusal.message };
}
