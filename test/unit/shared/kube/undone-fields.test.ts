import { expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { undoing } from "#shared/kube/undone-fields.ts";

const container = { name: "web", image: "web:1", ports: [{ containerPort: 80 }] };
const manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: { app: "web" }, finalizers: ["a/b"] },
  spec: { replicas: 2, paused: false, template: { spec: { containers: [{ name: "proxy" }, container] } } },
};
const containers = (fields: JsonObject) => ({
  "f:spec": { "f:template": { "f:spec": { "f:containers": { 'k:{"name":"web"}': fields } } } },
});
const entry = (manager: string, fieldsV1: JsonObject, more: JsonObject = {}) => ({
  manager,
  operation: "Update",
  time: "2026-11-21T08:00:00Z",
  fieldsV1,
  ...more,
});
const own = (fieldsV1: JsonObject) => entry("starling", fieldsV1, { operation: "Apply", time: "2026-11-21T09:00:00Z" });
const from = (...managedFields: JsonObject[]) => undoing(manifest, { metadata: { managedFields } });

test.each<[string, JsonObject[], { readonly by: string; readonly fields: string }]>([
  [
    "an autoscaler that wrote through a subresource",
    [
      own({ "f:spec": { "f:paused": {} } }),
      entry("kube-controller-manager", { "f:spec": { "f:replicas": {} } }, { subresource: "scale" }),
    ],
    { by: "kube-controller-manager (scale)", fields: "spec.replicas" },
  ],
  [
    "no fields that the other owns alone, shares, or writes in the status",
    [
      own({ "f:spec": { "f:paused": {} } }),
      entry("a", { "f:metadata": { "f:annotations": { "f:x": {} } }, "f:spec": { "f:paused": {} } }),
      entry("b", { "f:spec": { "f:replicas": {} } }, { subresource: "status" }),
    ],
    { by: "a", fields: "fields of the manifest" },
  ],
  [
    "fields of items by their position",
    [own(containers({ ".": {}, "f:name": {} })), entry("setter", containers({ "f:image": {}, "f:env": {} }))],
    { by: "setter", fields: "spec.template.spec.containers[1].image" },
  ],
  [
    "an item whose key has a default",
    [
      entry(
        "setter",
        containers({ "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { "f:containerPort": {} } } }),
      ),
    ],
    { by: "setter", fields: "spec.template.spec.containers[1].ports[0].containerPort" },
  ],
  [
    "members of a set without their values",
    [entry("setter", { "f:metadata": { "f:finalizers": { 'v:"a/b"': {} } } })],
    { by: "setter", fields: "metadata.finalizers[0]" },
  ],
  [
    "the newest of several writers, and the number of further fields",
    [
      entry("older", { "f:spec": { "f:replicas": {} } }),
      entry(
        "newer",
        { "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { "f:replicas": {}, "f:paused": {} }, "f:kind": {} },
        { time: "2026-11-21T08:30:00Z" },
      ),
    ],
    { by: "newer", fields: "metadata.labels.app, spec.replicas, spec.paused and 1 more" },
  ],
  ["an unknown writer if no entry is known", [], { by: "somebody", fields: "fields of the manifest" }],
])("the reason for undone fields names %s", (_name, managedFields, desired) => {
  expect(from(...managedFields)).toEqual(desired);
});
