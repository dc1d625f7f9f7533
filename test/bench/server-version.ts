import type { Stack } from "#local/machine/stack.ts";
import { parseJson } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { RawCluster } from "#test/bench/kube-requests.ts";

/** Such as `v1.36.2`. */
export async function serverVersion(cluster: RawCluster): Promise<string> {
  return stringAt(parseJson(await cluster.send({ method: "GET", path: "/version" })), "gitVersion") ?? "";
}

/** Of the embedded API servers of a machine. */
export async function stackVersion({ clusters }: Pick<Stack, "clusters">): Promise<string> {
  const [connection] = clusters.connections();
  if (connection === undefined) return "";
  const cluster = new RawCluster(connection);
  try {
    return await serverVersion(cluster);
  } finally {
    cluster.close();
  }
}
