import { namespaceKind } from "#functions/apply/engine/core-kinds.ts";
import type { VerbContext, VerbResult } from "#functions/apply/verbs/verb.ts";
import { stringAt } from "#shared/domain/kube-object.ts";

/**
 * Asks a cluster who it is.
 * @returns its uid when it is the one it was, or the first time; else the finding, and nothing seen on it is about ours.
 */
export async function identityFinding(
  context: Pick<VerbContext, "client" | "clusterUid">,
): Promise<{ readonly uid: string } | VerbResult> {
  const { client, clusterUid } = context;
  const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, { metadataOnly: true });
  const uid = stringAt(system, "metadata", "uid");
  if (uid !== undefined && (clusterUid === undefined || uid === clusterUid)) return { uid };
  const message = `kube-system has the uid ${uid ?? "(none)"}, expected ${clusterUid}; check the endpoint`;
  return { phase: "Unreachable", reason: "IdentityMismatch", message };
}
