import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { namespaceKind } from "#shared/kube/engine/core-kinds.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/**
 * The form of a uid of Kubernetes. Any other text may come from some other server, and must not get into a row or a
 * command to type.
 */
const uid = /^[A-Za-z0-9-]{1,64}$/;

/**
 * The uid of the cluster's namespace kube-system, which never changes; undefined when the cluster has none.
 * @throws KubeError when the cluster cannot be read.
 */
export async function clusterUidOf(client: Pick<ClusterClient, "get">): Promise<string | undefined> {
  const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, { metadataOnly: true });
  const found = stringAt(system, "metadata", "uid");
  return found !== undefined && uid.test(found) ? found : undefined;
}
