import { namespaceKind } from "#functions/apply/engine/core-kinds.ts";
import type { VerbContext, VerbResult } from "#functions/apply/verbs/verb.ts";
import { stringAt } from "#shared/domain/kube-object.ts";

/** A cluster that did not answer is only asked who it is; the planner says when the attempt starts over. */
export async function probeSync(context: VerbContext): Promise<VerbResult> {
  const system = await context.client.get(
    namespaceKind,
    { namespace: "", name: "kube-system" },
    { metadataOnly: true },
  );
  const uid = stringAt(system, "metadata", "uid");
  if (uid === undefined || (context.clusterUid !== undefined && uid !== context.clusterUid)) {
    const message = `kube-system has the uid ${uid ?? "(none)"}, expected ${context.clusterUid}; check the endpoint`;
    return { phase: "Unreachable", reason: "IdentityMismatch", message };
  }
  return { phase: "Reachable", reason: "AnswersAgain", message: "waits for its turn in the rollout", clusterUid: uid };
}
