import { expect, test } from "vitest";
import { foreignFailure, foreignObject } from "#shared/kube/engine/foreign-object.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

const marked: KubeObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "c", namespace: "shop", uid: "u1", annotations: { "helm.sh/resource-policy": "keep" } },
};

test.each([
  ["that is marked to be kept", marked, { keep: "it is marked helm.sh/resource-policy: keep" }],
  ["without a mark", { ...marked, metadata: { name: "c", namespace: "shop", uid: "u1" } }, {}],
] as const)("a foreign object %s is reported with its mark", (_what, live, mark) => {
  const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
  expect(foreignObject(id, live, "set")).toEqual({ id, uid: "u1", member: false, ...mark });
});

test.each([
  ["labels", "kustomize.toolkit.fluxcd.io/name", "label"],
  ["annotations", "argocd.argoproj.io/tracking-id", "annotation"],
  ["labels", "applyset.kubernetes.io/part-of", "label"],
])("the refusal of a foreign object names the mark to remove: %s %s", async (place, mark, word) => {
  const metadata = { name: "c", namespace: "shop", [place]: { [mark]: "another" } };
  const live = { apiVersion: "v1", kind: "ConfigMap", metadata };
  const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
  const failure = await foreignFailure(id, live, { setId: "ours", adopt: [] });
  expect(failure?.message).toContain(`remove its ${word} ${mark}`);
});
