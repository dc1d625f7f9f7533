import type { KindInfo } from "#shared/kube/cluster-client.ts";

export const namespaceKind = coreKind("Namespace", "namespaces", { namespaced: false });
export const configMapKind = coreKind("ConfigMap", "configmaps", { namespaced: true });

/** The two kinds that every cluster has. Looking them up would require discovery before the identity is known. */
function coreKind(kind: string, plural: string, { namespaced }: { readonly namespaced: boolean }): KindInfo {
  return { group: "", version: "v1", kind, plural, namespaced, verbs: ["get", "create", "update"], hasStatus: false };
}
