import { parseJson } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import type { RawCluster } from "#test/bench/kube-requests.ts";

/** Such as `v1.36.2`. */
export async function serverVersion(cluster: RawCluster): Promise<string> {
  return stringAt(parseJson(await cluster.send({ method: "GET", path: "/version" })), "gitVersion") ?? "";
}
