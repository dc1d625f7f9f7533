import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareForApply, inRanks, rankOf } from "#shared/kube/apply-order.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const id = (group: string, kind: string, name = "x", namespace = "n"): ObjectId => ({ group, kind, namespace, name });

/** Pairs of objects, of which the first must be applied before the second. */
const before: readonly (readonly [ObjectId, ObjectId])[] = [
  [id("", "Namespace"), id("", "ConfigMap")],
  [id("", "Namespace"), id("apiextensions.k8s.io", "CustomResourceDefinition")],
  [id("apiextensions.k8s.io", "CustomResourceDefinition"), id("example.com", "Widget")],
  [id("storage.k8s.io", "StorageClass"), id("", "PersistentVolumeClaim")],
  [id("scheduling.k8s.io", "PriorityClass"), id("apps", "Deployment")],
  [id("gateway.networking.k8s.io", "GatewayClass"), id("gateway.networking.k8s.io", "Gateway")],
  [id("", "ResourceQuota"), id("", "Pod")],
  [id("", "ServiceAccount"), id("rbac.authorization.k8s.io", "RoleBinding")],
  [id("rbac.authorization.k8s.io", "Role"), id("rbac.authorization.k8s.io", "RoleBinding")],
  [id("rbac.authorization.k8s.io", "ClusterRole"), id("rbac.authorization.k8s.io", "ClusterRoleBinding")],
  [id("", "Secret"), id("apps", "Deployment")],
  [id("", "PersistentVolumeClaim"), id("apps", "StatefulSet")],
  [id("", "Service"), id("apps", "StatefulSet")],
  [id("example.com", "Widget"), id("apps", "Deployment")],
  [id("apps", "Deployment"), id("autoscaling", "HorizontalPodAutoscaler")],
  [id("apps", "Deployment"), id("apiregistration.k8s.io", "APIService")],
  [id("apps", "Deployment"), id("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")],
];

describe("the order of application", () => {
  test.each(before)("the object %j is applied before %j", (first, second) => {
    expect(rankOf(first)).toBeLessThan(rankOf(second));
    expect(compareForApply(first, second)).toBeLessThan(0);
  });

  test("a Role of another API group is not applied as a Role", () => {
    expect(rankOf(id("example.com", "Role"))).toBe(rankOf(id("example.com", "Widget")));
  });

  test("objects of equal rank are sorted by group, kind, namespace and name", () => {
    const [rank] = inRanks([id("", "Secret", "b"), id("", "ConfigMap", "b"), id("", "ConfigMap", "a", "z")], (i) => i);
    expect(rank?.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`)).toEqual([
      "ConfigMap n/b",
      "ConfigMap z/a",
      "Secret n/b",
    ]);
  });

  test.each(propertySeeds)("any order of the input gives the same order of the output (seed %i)", (seed) => {
    const part = fc.constantFrom("", "a", "b", "apps", "batch");
    const kind = fc.constantFrom("Namespace", "Deployment", "Job", "Secret", "Widget");
    const anyId = fc.record({ group: part, kind, namespace: part, name: part });
    fc.assert(
      fc.property(fc.uniqueArray(anyId, { selector: (i) => JSON.stringify(i) }), (ids) => {
        const sorted = inRanks(ids, (i) => i).flat();
        expect(inRanks([...ids].reverse(), (i) => i).flat()).toEqual(sorted);
        expect(sorted).toHaveLength(ids.length);
      }),
      { seed, numRuns: propertyRuns(50) },
    );
  });
});
