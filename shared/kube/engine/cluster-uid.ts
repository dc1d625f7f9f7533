import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { namespaceKind } from "#shared/kube/engine/core-kinds.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/** What Kubernetes makes; anything else is some server's text, and goes into no row and no command to be typed. */
const uid = /^[A-Za-z0-9-]{1,64}$/;

/**
 * The uid of a cluster's kube-system, which stays the same for as long as the cluster does; undefined where it has none.
 * @throws KubeError when the cluster cannot be read.
 */
export async function clusterUidOf(client: Pick<ClusterClient, "get">): Promise<string | undefined> {
  const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, { metadataOnly: true });
  const found = stringAt(system, "metadata", "uid");
  return found !== undefined && uid.test(found) ? found : undefined;
}
