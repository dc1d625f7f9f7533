import type { KindInfo } from "#shared/kube/cluster-client.ts";

/** A kind as discovery tells of it: ConfigMaps, but for what a test says otherwise. */
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
