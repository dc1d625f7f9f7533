import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { holdsManifest } from "#shared/kube/holds-manifest.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";

const manifest: ManifestObject = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop", labels: { app: "web" }, finalizers: ["a/x"] },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: {
      spec: {
        containers: [
          { name: "web", image: "web:1", ports: [{ containerPort: 80 }], args: ["a", "b"] },
          { name: "proxy", image: "proxy:1" },
        ],
        volumes: [{ name: "tmp", emptyDir: {} }],
      },
    },
  },
};

const fields: JsonObject = {
  "f:metadata": { "f:labels": { "f:app": {} }, "f:finalizers": { 'v:"a/x"': {} } },
  "f:spec": {
    "f:replicas": {},
    "f:selector": {},
    "f:template": {
      "f:spec": {
        "f:containers": {
          'k:{"name":"proxy"}': { ".": {}, "f:name": {}, "f:image": {} },
          'k:{"name":"web"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:args": {},
            "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} } },
          },
        },
        "f:volumes": { 'k:{"name":"tmp"}': { ".": {}, "f:name": {}, "f:emptyDir": {} } },
      },
    },
  },
};

const spec = {
  replicas: 2,
  revisionHistoryLimit: 10,
  selector: { matchLabels: { app: "web" } },
  template: {
    spec: {
      containers: [
        { name: "injected", image: "mesh:1" },
        {
          name: "web",
          image: "web:1",
          imagePullPolicy: "IfNotPresent",
          ports: [{ containerPort: 80, protocol: "TCP" }],
          args: ["a", "b"],
        },
        { name: "proxy", image: "proxy:1" },
      ],
      volumes: [{ name: "tmp", emptyDir: {} }],
    },
  },
};

function live(changes: { readonly spec?: JsonObject; readonly fields?: JsonObject; readonly entry?: JsonObject } = {}) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: "web",
      namespace: "shop",
      uid: "1",
      labels: { app: "web", other: "x" },
      finalizers: ["b/y", "a/x"],
      managedFields: [
        {
          manager: "starling",
          operation: "Apply",
          apiVersion: "apps/v1",
          fieldsV1: changes.fields ?? fields,
          ...changes.entry,
        },
      ],
    },
    spec: { ...spec, ...changes.spec },
    status: { replicas: 2 },
  };
}

const [, web, proxy] = spec.template.spec.containers;
const withContainers = (containers: readonly JsonObject[]) => ({
  template: { spec: { ...spec.template.spec, containers } },
});
const withSpec = (changes: JsonObject): ManifestObject => ({
  ...manifest,
  spec: { ...(manifest.spec as JsonObject), ...changes },
});

describe("holdsManifest", () => {
  test("a live object holds its manifest despite others' fields and items, server defaults and a status", () => {
    expect(holdsManifest(live(), manifest)).toBe(true);
  });

  /** The difference, the manifest, and the live object. */
  const others: readonly (readonly [string, ManifestObject, JsonObject])[] = [
    ["a value of git's", withSpec({ replicas: 3 }), live()],
    ["a value of the cluster's", manifest, live({ spec: { replicas: 5 } })],
    ["a field in git that nobody owns", withSpec({ paused: true }), live({ spec: { paused: true } })],
    ["a field that was removed from git", withSpec({ replicas: undefined as never }), live()],
    ["a value that the server writes in another form", withSpec({ replicas: "2" }), live()],
    ["an atomic map with more in it", withSpec({ selector: { matchLabels: { app: "web", b: "c" } } }), live()],
    ["an item that is gone", manifest, live({ spec: withContainers([web as JsonObject]) })],
    ["items in another order", manifest, live({ spec: withContainers([proxy, web] as JsonObject[]) })],
    ["an item's value", manifest, live({ spec: withContainers([{ ...web, image: "web:2" }, proxy] as JsonObject[]) })],
    ["an atomic list", manifest, live({ spec: withContainers([{ ...web, args: ["b", "a"] }, proxy] as JsonObject[]) })],
    ["another version", { ...manifest, apiVersion: "apps/v1beta1" }, live()],
    ["another manager's apply", manifest, live({ entry: { manager: "kubectl" } })],
    ["a status that Starling applied", manifest, live({ entry: { subresource: "status" } })],
    ["no fields at all", manifest, { ...live(), metadata: { name: "web" } }],
    ["a label", { ...manifest, metadata: { ...manifest.metadata, labels: { app: "web", team: "x" } } }, live()],
    ["an item of a set", { ...manifest, metadata: { ...manifest.metadata, finalizers: ["b/y"] } }, live()],
  ];
  test.each(others)("a live object does not hold its manifest with a difference in %s", (_name, desired, found) => {
    expect(holdsManifest(found, desired)).toBe(false);
  });
});
