import { expect, test } from "vitest";
import { needsWholeObjects } from "#shared/kube/engine/check-health.ts";

test.each([
  ["", ["ConfigMap", "Secret", "ServiceAccount", "LimitRange", "Endpoints"]],
  ["batch", ["CronJob"]],
  ["discovery.k8s.io", ["EndpointSlice"]],
  ["networking.k8s.io", ["NetworkPolicy", "IngressClass"]],
  ["node.k8s.io", ["RuntimeClass"]],
  ["rbac.authorization.k8s.io", ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]],
  ["scheduling.k8s.io", ["PriorityClass"]],
  ["storage.k8s.io", ["StorageClass"]],
])("the health of kinds in the group %j without a status is known from their metadata", (group, kinds) => {
  for (const kind of kinds) {
    expect(needsWholeObjects({ group, kind }), kind).toBe(false);
    // A kind with the same name in another group may have a status.
    expect(needsWholeObjects({ group: "example.com", kind }), kind).toBe(true);
  }
});

test.each([
  ["", "Pod"],
  ["", "Namespace"],
  ["", "PersistentVolumeClaim"],
  ["apps", "Deployment"],
  ["batch", "Job"],
  ["networking.k8s.io", "Ingress"],
])("the health of %s/%s needs the whole object", (group, kind) => {
  expect(needsWholeObjects({ group, kind })).toBe(true);
});
