import { describe, expect, test } from "vitest";
import { deletionsOf, guardText, type Leaving } from "#shared/fleet/forecast/object-guards.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

function object(kind: string, name: string, annotations: Readonly<Record<string, string>> = {}): ManifestObject {
  const apiVersion = kind === "CustomResourceDefinition" ? "apiextensions.k8s.io/v1" : "v1";
  const place = kind === "ConfigMap" || kind === "PersistentVolumeClaim" ? { namespace: "shop" } : {};
  return { apiVersion, kind, metadata: { name, ...place, annotations } };
}

const gone = [
  object("ConfigMap", "a"),
  object("ConfigMap", "marked", { "helm.sh/resource-policy": "keep" }),
  object("ConfigMap", "hook", { "helm.sh/hook": "pre-install" }),
  object("Namespace", "shop"),
  object("Namespace", "kube-system"),
  object("CustomResourceDefinition", "gauges.example.com"),
  object("PersistentVolumeClaim", "data"),
];

const summaryOf = (leaving: readonly Leaving[]) => {
  const { objects, clusters, guards } = deletionsOf(leaving);
  return { objects, clusters, guards: guards.map((guard) => `${guard.effect} ${guardText(guard)}`) };
};

describe("the deletions of a plan", () => {
  test("a plan counts the objects that it would delete, with the guards that keep or delay some of them", () => {
    const found = summaryOf([
      { clusters: ["c1", "c2"], objects: gone, prune: true },
      { clusters: ["c3"], objects: [object("Namespace", "shop")], prune: true },
    ]);
    expect(found).toEqual({
      objects: 9,
      clusters: 3,
      guards: [
        "waits Namespace shop on 3 clusters: it goes when nothing is left in it",
        "kept ConfigMap shop/marked on 2 clusters: it is marked helm.sh/resource-policy: keep",
        "kept Namespace kube-system on 2 clusters: Starling never deletes Namespace kube-system",
        "unasked PersistentVolumeClaim shop/data on 2 clusters: the data of its volume is deleted with it, if the reclaim policy of its class is Delete",
        "waits CustomResourceDefinition.apiextensions.k8s.io gauges.example.com on 2 clusters: it goes when no object of it is left",
      ],
    });
  });

  test("a plan deletes nothing where pruning is off", () => {
    expect(summaryOf([{ clusters: ["c1"], objects: gone, prune: false }])).toEqual({
      objects: 0,
      clusters: 0,
      guards: [],
    });
  });
});
