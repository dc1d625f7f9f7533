import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { clusterUidOf } from "#shared/kube/engine/ensure-parent.ts";

/**
 * Asks a cluster for its identity.
 * @returns its uid when the cluster is the expected one, or unknown so far; otherwise the finding, and nothing that was
 *   seen there is about this cluster.
 */
export async function identityFinding(
  context: Pick<OperationContext, "client" | "clusterUid" | "row">,
): Promise<{ readonly uid: string } | OperationResult> {
  const { client, clusterUid } = context;
  const found = await clusterUidOf(client);
  if (found !== undefined && (clusterUid === undefined || found === clusterUid)) return { uid: found };
  return otherCluster(context, found);
}

/**
 * Another cluster answers at the endpoint: nothing is written to it until somebody accepts it, by the uid that was
 * seen.
 */
export function otherCluster(
  { clusterUid, row }: Pick<OperationContext, "clusterUid" | "row">,
  found: string | undefined,
): OperationResult {
  const phase = { phase: "Unreachable", reason: "IdentityMismatch" } as const;
  if (found === undefined)
    return { ...phase, message: "it has no namespace kube-system with a uid; check the endpoint" };
  const seen = `kube-system has the uid ${found}, expected ${clusterUid}`;
  const message = `${seen}; if the cluster was rebuilt: starling cluster accept ${row.cluster} --uid ${found}; else check the endpoint`;
  return { ...phase, message, otherUid: found };
}
