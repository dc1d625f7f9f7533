import { expect, test } from "vitest";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

/** Group, kind, name, annotations, and the reason to keep the object. */
test.each([
  ["", "Namespace", "kube-system", {}, "Starling never deletes Namespace kube-system"],
  ["", "Namespace", "starling-system", {}, "Starling never deletes Namespace starling-system"],
  ["", "Namespace", "shop", {}, undefined],
  ["", "ConfigMap", "default", {}, undefined],
  ["tenants.example.com", "Namespace", "default", {}, undefined],
  ["", "Namespace", "shop", { "helm.sh/resource-policy": "keep" }, "it is marked helm.sh/resource-policy: keep"],
] as const)(
  "the object %s %s %s with the annotations %j is kept because: %s",
  (group, kind, name, annotations, reason) => {
    const live: KubeObject = { apiVersion: "v1", kind, metadata: { name, annotations } };
    expect(reasonToKeep({ group, kind, name, namespace: "" }, live)).toBe(reason);
  },
);
