import { clusterUidOf } from "#functions/apply/engine/cluster-uid.ts";
import type { VerbContext, VerbResult } from "#functions/apply/verbs/verb.ts";

/**
 * Asks a cluster who it is.
 * @returns its uid when it is the one it was, or the first time; else the finding, and nothing seen on it is about ours.
 */
export async function identityFinding(
  context: Pick<VerbContext, "client" | "clusterUid">,
): Promise<{ readonly uid: string } | VerbResult> {
  const { client, clusterUid } = context;
  const uid = await clusterUidOf(client);
  if (uid !== undefined && (clusterUid === undefined || uid === clusterUid)) return { uid };
  const message = `kube-system has the uid ${uid ?? "(none)"}, expected ${clusterUid}; check the endpoint`;
  return { phase: "Unreachable", reason: "IdentityMismatch", message };
}
