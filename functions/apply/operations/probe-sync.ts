import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";

/** Asks a cluster that did not answer only for its identity; the planner decides when the attempt starts again. */
export async function probeSync(context: OperationContext): Promise<OperationResult> {
  const found = await identityFinding(context);
  if (!("uid" in found)) return found;
  const message = "waits for its turn in the rollout";
  return { phase: "Reachable", reason: "AnswersAgain", message, clusterUid: found.uid };
}
