import type { KindInfo } from "#shared/kube/cluster-client.ts";

/** A kind as discovery describes it: ConfigMap, unless a test sets other fields. */
export function kindInfo(rest: Partial<KindInfo> = {}): KindInfo {
  return {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    namespaced: true,
    verbs: ["list"],
    hasStatus: false,
    ...rest,
  };
}
