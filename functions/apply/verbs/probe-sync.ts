import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import type { VerbContext, VerbResult } from "#functions/apply/steps/verb.ts";

/** A cluster that did not answer is only asked who it is; the planner says when the attempt starts over. */
export async function probeSync(context: VerbContext): Promise<VerbResult> {
  const found = await identityFinding(context);
  if (!("uid" in found)) return found;
  const message = "waits for its turn in the rollout";
  return { phase: "Reachable", reason: "AnswersAgain", message, clusterUid: found.uid };
}
