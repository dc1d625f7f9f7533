import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

/**
 * Repeats the work once when the server no longer knows a kind, because definitions can change while a catalog of kinds
 * is cached.
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
