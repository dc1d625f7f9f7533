/**
 * Random requests that no person would write: three managers apply, patch, replace and delete valid and invalid objects
 * of five kinds. The same random numbers give the same requests.
 */

import type { ClusterRequest } from "@starling/embedded-apiserver/testing";
import type { Random } from "#local/base/random.ts";
import type { Json, JsonObject } from "#shared/base/json.ts";

const choices = { type: "object", additionalProperties: { type: "string" } };

/** A definition with every list and map type, defaults, limits and fields without a schema. */
export const gadgetDefinition: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "gadgets.random.example.com" },
  spec: {
    group: "random.example.com",
    scope: "Namespaced",
    names: { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              status: { type: "object", properties: { phase: { type: "string" } } },
              spec: {
                type: "object",
                required: ["size"],
                properties: {
                  size: { type: "integer", minimum: 0, maximum: 5 },
                  color: { type: "string", enum: ["red", "green"], default: "red" },
                  tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
                  words: { type: "array", items: { type: "string" } },
                  parts: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    items: {
                      type: "object",
                      required: ["name"],
                      properties: {
                        name: { type: "string" },
                        count: { type: "integer" },
                        note: { type: "string", default: "none" },
                      },
                    },
                  },
                  whole: { ...choices, "x-kubernetes-map-type": "atomic" },
                  free: choices,
                  open: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  port: { "x-kubernetes-int-or-string": true },
                  maybe: { type: "string", nullable: true },
                },
              },
            },
          },
        },
      },
    ],
  },
};

const managers = ["alice", "bob", "carol"];
const names = ["one", "two"];
const patchTypes = {
  apply: "application/apply-patch+yaml",
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

/** Random choices of an object's parts. */
class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  chance(probability: number): boolean {
    return this.#random.chance(probability);
  }

  one<T>(items: readonly T[]): T {
    return items[this.#random.integer(0, items.length - 1)] as T;
  }

  some<T>(items: readonly T[], probability = 0.5): T[] {
    return items.filter(() => this.chance(probability));
  }

  maybe(probability: number, make: () => JsonObject): JsonObject {
    return this.chance(probability) ? make() : {};
  }

  map(keys: readonly string[], values: readonly Json[]): JsonObject {
    return Object.fromEntries(this.some(keys).map((key) => [key, this.one(values)]));
  }
}

interface RandomKind {
  readonly apiVersion: string;
  readonly kind: string;
  /** Makes the members of an object beside its metadata. */
  readonly body: (dice: Dice) => JsonObject;
  /** The paths that a JSON patch changes, with values for them. */
  readonly paths: Readonly<Record<string, readonly Json[]>>;
}

const kinds: Readonly<Record<string, RandomKind>> = {
  configmaps: {
    apiVersion: "v1",
    kind: "ConfigMap",
    body: (dice) => ({
      ...dice.maybe(0.9, () => ({ data: dice.map(["k1", "k2", "k3"], ["1", "2"]) })),
      ...dice.maybe(0.1, () => ({ immutable: dice.chance(0.5) })),
      ...dice.maybe(0.1, () => ({ binaryData: { k3: "AAAA" } })),
    }),
    paths: { "/data/k1": ["1", "2"], "/data/k9": ["1"], "/metadata/labels/a": ["1"], "/data": [{}] },
  },
  secrets: {
    apiVersion: "v1",
    kind: "Secret",
    body: (dice) => ({
      ...dice.maybe(0.2, () => ({ type: dice.one(["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/tls"]) })),
      ...dice.maybe(0.5, () => ({ stringData: dice.map(["k1", "username"], ["1", "2"]) })),
      ...dice.maybe(0.5, () => ({ data: dice.map(["k1", "k2"], ["MQ==", "Mg=="]) })),
    }),
    paths: { "/data/k2": ["Mw=="], "/data": [{}] },
  },
  services: {
    apiVersion: "v1",
    kind: "Service",
    body: (dice) => ({ spec: serviceSpec(dice) }),
    paths: { "/spec/ports/0/port": [81], "/spec/selector/app": ["x"], "/spec/type": ["ClusterIP", "NodePort"] },
  },
  deployments: {
    apiVersion: "apps/v1",
    kind: "Deployment",
    body: (dice) => ({ spec: deploymentSpec(dice) }),
    paths: {
      "/spec/replicas": [1, 2],
      "/spec/template/spec/containers/0/image": ["nginx:3"],
      "/spec/template/spec/containers/1": [{ name: "three", image: "nginx:3" }],
      "/spec/paused": [true, false],
    },
  },
  gadgets: {
    apiVersion: "random.example.com/v1",
    kind: "Gadget",
    body: (dice) => dice.maybe(0.95, () => ({ spec: gadgetSpec(dice) })),
    paths: {
      "/spec/size": [1, 9],
      "/spec/tags/0": ["t9"],
      "/spec/parts/-": [{ name: "p9" }],
      "/spec/color": ["red", "blue"],
      "/spec/free/x": ["1"],
    },
  },
};

function serviceSpec(dice: Dice): JsonObject {
  const port = (number: number) => ({
    port: number,
    ...dice.maybe(0.7, () => ({ name: `n${number}` })),
    ...dice.maybe(0.3, () => ({ protocol: dice.one(["TCP", "UDP"]) })),
    ...dice.maybe(0.4, () => ({ targetPort: dice.one([8080, "web"]) })),
  });
  return {
    ...dice.maybe(0.9, () => ({ ports: dice.some([80, 443, 53]).map(port) })),
    ...dice.maybe(0.7, () => ({ selector: dice.map(["app", "tier"], ["x", "y"]) })),
    ...dice.maybe(0.2, () => ({ type: dice.one(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]) })),
    ...dice.maybe(0.1, () => ({ clusterIP: "None" })),
    ...dice.maybe(0.15, () => ({ sessionAffinity: dice.one(["None", "ClientIP"]) })),
  };
}

function deploymentSpec(dice: Dice): JsonObject {
  const strategies = [
    { type: "Recreate" },
    { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } },
    { rollingUpdate: { maxUnavailable: "50%" } },
  ];
  return {
    ...dice.maybe(0.6, () => ({ replicas: dice.one([0, 1, 2, 3]) })),
    ...dice.maybe(0.85, () => ({ selector: { matchLabels: { app: dice.one(["w", "w", "w", "v"]) } } })),
    ...dice.maybe(0.2, () => ({ strategy: dice.one<JsonObject>(strategies) })),
    template: {
      metadata: { labels: { app: "w", ...dice.map(["extra"], ["1", "2"]) } },
      spec: {
        containers: dice.some(["first", "second"], 0.7).map((name) => container(dice, name)),
        ...dice.maybe(0.15, () => ({ nodeSelector: { disk: dice.one(["ssd", "hdd"]) } })),
        ...dice.maybe(0.1, () => ({ tolerations: [{ key: "k", operator: "Exists" }] })),
        ...dice.maybe(0.2, () => ({
          volumes: [{ name: "v", ...dice.one<JsonObject>([{ emptyDir: {} }, { configMap: { name: "c" } }]) }],
        })),
      },
    },
  };
}

function container(dice: Dice, name: string): JsonObject {
  const variable = (each: string) => ({
    name: each,
    ...(dice.chance(0.8)
      ? { value: dice.one(["1", "2"]) }
      : { valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }),
  });
  const port = (number: number) => ({
    containerPort: number,
    ...dice.maybe(0.3, () => ({ protocol: dice.one(["TCP", "UDP"]) })),
    ...dice.maybe(0.2, () => ({ name: `p${number}` })),
  });
  return {
    name,
    ...dice.maybe(0.85, () => ({ image: dice.one(["nginx:1", "nginx:2"]) })),
    ...dice.maybe(0.4, () => ({ env: dice.some(["A", "B", "C"]).map(variable) })),
    ...dice.maybe(0.4, () => ({ ports: dice.some([80, 81]).map(port) })),
    ...dice.maybe(0.3, () => ({ args: dice.some(["-a", "-b"]) })),
    ...dice.maybe(0.3, () => ({ resources: { limits: dice.map(["cpu"], ["1", "1000m", "0.5"]) } })),
    ...dice.maybe(0.15, () => ({ readinessProbe: { httpGet: { path: "/", port: dice.one([80, "http"]) } } })),
  };
}

function gadgetSpec(dice: Dice): JsonObject {
  const part = (name: string) => ({
    name,
    ...dice.maybe(0.6, () => ({ count: dice.one([1, 2]) })),
    ...dice.maybe(0.2, () => ({ note: "x" })),
  });
  return {
    ...dice.maybe(0.85, () => ({ size: dice.one([0, 1, 5, 6]) })),
    ...dice.maybe(0.3, () => ({ color: dice.one(["red", "green", "blue"]) })),
    ...dice.maybe(0.4, () => ({ tags: dice.some(["t1", "t2", "t3"]) })),
    ...dice.maybe(0.4, () => ({ words: dice.some(["w1", "w2", "w1"]) })),
    ...dice.maybe(0.5, () => ({ parts: dice.some(["p1", "p2", "p3"]).map(part) })),
    ...dice.maybe(0.3, () => ({ whole: dice.map(["x", "y"], ["1", "2"]) })),
    ...dice.maybe(0.3, () => ({ free: dice.map(["x", "y"], ["1", "2"]) })),
    ...dice.maybe(0.2, () => ({ open: dice.one<JsonObject>([{ a: 1 }, { a: [1, { b: 2 }] }, {}]) })),
    ...dice.maybe(0.2, () => ({ port: dice.one<Json>([80, "http", true]) })),
    ...dice.maybe(0.15, () => ({ maybe: dice.one([null, "m"]) })),
    // At most one of them, because a real server reports several in a random order.
    ...dice.maybe(0.2, () => dice.one<JsonObject>([{ unknown: 1 }, { size: "1" }, { words: "w1" }])),
  };
}

function metadata(dice: Dice, name: string, namespace: string): JsonObject {
  return {
    name,
    namespace,
    ...dice.maybe(0.4, () => ({ labels: { a: dice.one(["1", "2"]), ...dice.map(["b", "c"], ["1", "2"]) } })),
    ...dice.maybe(0.2, () => ({ annotations: { note: dice.one(["x", "y"]) } })),
    ...dice.maybe(0.08, () => ({ finalizers: dice.some(["example.com/a", "example.com/b"]) })),
  };
}

/** Makes some members null, which deletes them, but none so deep that a template loses its labels. */
function withNulls(dice: Dice, value: Json, depth = 0): Json {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  const members = Object.entries(value as JsonObject).map(([key, member]): [string, Json] => {
    if (depth > 1 && depth < 4 && dice.chance(0.12)) return [key, null];
    return [key, withNulls(dice, member ?? null, depth + 1)];
  });
  return Object.fromEntries(members);
}

function jsonPatch(dice: Dice, { paths }: RandomKind): JsonObject[] {
  return dice.one([[0], [0, 1]]).map(() => {
    const path = dice.one(Object.keys(paths));
    const op = dice.one(["add", "replace", "remove", "test"]);
    return op === "remove" ? { op, path } : { op, path, value: dice.one(paths[path] ?? []) };
  });
}

interface Resource {
  readonly kind: RandomKind;
  readonly object: JsonObject;
  /** The path of the object; `list` is that of all objects of its kind in the namespace. */
  readonly path: string;
  readonly list: string;
  readonly query: string;
}

type Verb = (dice: Dice, resource: Resource) => ClusterRequest;

function patch(type: string, body: Json, { path, query }: Pick<Resource, "path" | "query">): ClusterRequest {
  return { method: "PATCH", path: `${path}?${query}`, headers: { "content-type": type }, body };
}

const verbs: readonly { readonly share: number; readonly verb: Verb }[] = [
  {
    share: 0.55,
    verb: (dice, resource) => {
      const force = dice.chance(0.5) ? "&force=true" : "";
      return patch(patchTypes.apply, resource.object, { ...resource, query: `${resource.query}${force}` });
    },
  },
  { share: 0.1, verb: (dice, resource) => patch(patchTypes.merge, withNulls(dice, resource.object), resource) },
  { share: 0.08, verb: (dice, resource) => patch(patchTypes.strategic, withNulls(dice, resource.object), resource) },
  { share: 0.06, verb: (dice, resource) => patch(patchTypes.json, jsonPatch(dice, resource.kind), resource) },
  {
    share: 0.06,
    verb: (_dice, { list, query, object }) => ({ method: "POST", path: `${list}?${query}`, body: object }),
  },
  {
    share: 0.06,
    verb: (_dice, { path, query, object }) => ({ method: "PUT", path: `${path}?${query}`, body: object }),
  },
  {
    share: 0.04,
    verb: (dice, { path }) => {
      const propagationPolicy = dice.one(["Foreground", "Background", "Orphan"]);
      return { method: "DELETE", path, body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy } };
    },
  },
  {
    share: 0.05,
    verb: (dice, { list }) => {
      const labelSelector = dice.one(["a=1", "a in (1,2)", "!b", "a"]);
      return { path: `${list}?${new URLSearchParams({ labelSelector })}` };
    },
  },
];

/** A random request for an object of this namespace. */
export function randomRequest(random: Random, namespace: string): ClusterRequest {
  const dice = new Dice(random);
  const [plural, kind] = dice.one(Object.entries(kinds));
  const name = dice.one(names);
  const { apiVersion } = kind;
  const list = `/${apiVersion.includes("/") ? "apis" : "api"}/${apiVersion}/namespaces/${namespace}/${plural}`;
  const query = new URLSearchParams({
    fieldManager: dice.one(managers),
    ...(dice.chance(0.06) ? { dryRun: "All" } : {}),
    ...(dice.chance(0.3) ? { fieldValidation: dice.one(["Strict", "Warn", "Ignore"]) } : {}),
  }).toString();
  const object = { apiVersion, kind: kind.kind, metadata: metadata(dice, name, namespace), ...kind.body(dice) };
  const resource: Resource = { kind, object, list, path: `${list}/${name}`, query };
  let left = random.integer(0, 999) / 1000;
  const chosen = verbs.find(({ share }) => {
    left -= share;
    return left < 0;
  });
  return (chosen ?? verbs[0])?.verb(dice, resource) ?? { path: list };
}
