import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";

/** A cluster that did not answer is only asked who it is; the planner says when the attempt starts over. */
export async function probeSync(context: OperationContext): Promise<OperationResult> {
  const found = await identityFinding(context);
  if (!("uid" in found)) return found;
  const message = "waits for its turn in the rollout";
  return { phase: "Reachable", reason: "AnswersAgain", message, clusterUid: found.uid };
}
