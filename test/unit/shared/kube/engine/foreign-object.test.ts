import { expect, test } from "vitest";
import { foreignObject } from "#shared/kube/engine/foreign-object.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

const marked: KubeObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "c", namespace: "shop", uid: "u1", annotations: { "helm.sh/resource-policy": "keep" } },
};

test.each([
  ["what is marked to be kept", marked, { keep: "it is marked helm.sh/resource-policy: keep" }],
  ["what is not", { ...marked, metadata: { name: "c", namespace: "shop", uid: "u1" } }, {}],
] as const)("of a foreign object people are told %s", (_what, live, told) => {
  const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
  expect(foreignObject(id, live, "set")).toEqual({ id, uid: "u1", member: false, ...told });
});
