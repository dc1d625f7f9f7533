import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

/**
 * Does the work again, once, when the server no longer knows a kind that was looked up: definitions come and go while a
 * catalog of kinds is kept.
 */
export async function withFreshKinds<T>(client: ClusterClient, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof KubeError) || error.class !== "noMatch") throw error;
    client.forgetKinds();
    return work();
  }
}
