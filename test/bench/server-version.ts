import { parseJson } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import type { ClusterAddress } from "#test/bench/children.ts";
import { RawCluster } from "#test/bench/kube-requests.ts";

/** Returns a version such as `v1.36.2`. */
export async function serverVersion(cluster: RawCluster): Promise<string> {
  return stringAt(parseJson(await cluster.send({ method: "GET", path: "/version" })), "gitVersion") ?? "";
}

/** Returns the version of an embedded API server; all of them have the same. */
export async function embeddedVersion([connection]: readonly ClusterAddress[]): Promise<string> {
  if (connection === undefined) return "";
  const cluster = new RawCluster(connection);
  try {
    return await serverVersion(cluster);
  } finally {
    cluster.close();
  }
}
