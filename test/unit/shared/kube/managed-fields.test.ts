import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "#shared/base/json.ts";
import { ownedDigests, project, retagPatch, takeOverPatch, unionFields } from "#shared/kube/managed-fields.ts";

const entry = (manager: string, operation: string, fieldsV1: JsonObject, rest: JsonObject = {}): JsonObject => ({
  manager,
  operation,
  apiVersion: "v1",
  time: "2026-05-01T12:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1,
  ...rest,
});
const live = (managedFields: readonly JsonObject[], annotations: JsonObject = {}): JsonObject => ({
  metadata: { name: "a", resourceVersion: "42", annotations, managedFields },
});
const own = entry("starling", "Apply", { "f:data": { "f:a": {} } });
const controller = entry("kube-controller-manager", "Update", { "f:status": {} }, { subresource: "status" });
const entriesIn = (patch: ReturnType<typeof takeOverPatch>) => patch?.find(({ op }) => op === "replace")?.value;

describe("takeOverPatch", () => {
  test.each<readonly [string, readonly JsonObject[]]>([
    ["Starling only", [own]],
    ["other tools", [own, entry("helm", "Update", { "f:data": {} })]],
    ["subresources", [own, entry("kubectl", "Update", { "f:spec": {} }, { subresource: "scale" })]],
    ["a restart asked for by kubectl", [own, entry("kubectl-rollout", "Update", { "f:spec": {} })]],
    ["nothing", []],
  ])("the entries of %s are not taken over", (_name, entries) => {
    expect(takeOverPatch(live(entries), "v1")).toBeUndefined();
  });

  test.each<readonly [string, JsonObject]>([
    ["kubectl edit", entry("kubectl-edit", "Update", { "f:data": { "f:b": {} } })],
    ["kubectl apply", entry("kubectl-client-side-apply", "Update", { "f:data": { "f:b": {} } })],
    ["kubectl apply --server-side", entry("kubectl", "Apply", { "f:data": { "f:b": {} } })],
    ["before-first-apply", entry("before-first-apply", "Update", { "f:data": { "f:b": {} } })],
    ["an update by Starling", entry("starling", "Update", { "f:data": { "f:b": {} } })],
  ])("the entry of %s is merged into Starling's", (_name, theirs) => {
    const patch = takeOverPatch(live([own, theirs, controller]), "v1");
    expect(entriesIn(patch)).toEqual([{ ...own, fieldsV1: { "f:data": { "f:a": {}, "f:b": {} } } }, controller]);
  });

  test("an object that Starling never applied is taken over", () => {
    const patch = takeOverPatch(live([entry("kubectl-create", "Update", { "f:data": { "f:b": {} } })]), "v1");
    expect(entriesIn(patch)).toMatchObject([
      { manager: "starling", operation: "Apply", fieldsV1: { "f:data": { "f:b": {} } } },
    ]);
  });

  test("a patch that takes over begins with a test of the resourceVersion", () => {
    const [first] = takeOverPatch(live([entry("kubectl", "Update", {})]), "v1") ?? [];
    expect(first).toEqual({ op: "test", path: "/metadata/resourceVersion", value: "42" });
  });

  test("a patch that takes over removes the annotations of earlier appliers", () => {
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}", mine: "x" };
    const patch = takeOverPatch(live([entry("kubectl", "Update", {})], annotations), "v1");
    expect(patch?.filter(({ op }) => op === "remove")).toEqual([
      { op: "remove", path: "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration" },
    ]);
  });
});

describe("retagPatch", () => {
  test("every entry gets the applied version, also those of subresources", () => {
    const patch = retagPatch(live([own, controller]), "v2");
    expect(entriesIn(patch)).toEqual([
      { ...own, apiVersion: "v2" },
      { ...controller, apiVersion: "v2" },
    ]);
  });

  test("no patch is made when every entry has the applied version", () => {
    expect(retagPatch(live([own]), "v1")).toBeUndefined();
  });
});

const web: JsonObject = {
  metadata: { labels: { app: "web", team: "shop" }, name: "web" },
  spec: {
    replicas: 3,
    template: {
      spec: {
        containers: [
          { name: "sidecar", image: "proxy" },
          {
            name: "web",
            image: "web:1",
            env: [
              { name: "A", value: "1" },
              { name: "B", value: "2" },
            ],
            ports: [{ containerPort: 80, protocol: "TCP" }],
          },
        ],
      },
    },
  },
};

/** Name, value, fields, and the part of the value that is owned. */
const projections: readonly (readonly [string, Json, JsonObject, Json | undefined])[] = [
  ["a leaf owns the whole value", { a: { b: 1 }, c: 2 }, { "f:a": {} }, { a: { b: 1 } }],
  ["members that are not owned are left out", { a: 1, b: 2 }, { "f:b": {} }, { b: 2 }],
  ["members that are not there are left out", { a: 1 }, { "f:a": {}, "f:b": {} }, { a: 1 }],
  ["a nested member", web, { "f:metadata": { "f:labels": { "f:app": {} } } }, { metadata: { labels: { app: "web" } } }],
  [
    "items of a keyed list, in live order",
    [
      { name: "b", v: 1 },
      { name: "x", v: 0 },
      { name: "a", v: 2 },
    ],
    { 'k:{"name":"a"}': { ".": {}, "f:name": {}, "f:v": {} }, 'k:{"name":"b"}': { ".": {}, "f:name": {} } },
    [{ name: "b" }, { name: "a", v: 2 }],
  ],
  [
    "a key of several members",
    [
      { containerPort: 80, protocol: "UDP", name: "u" },
      { containerPort: 80, protocol: "TCP", name: "t" },
    ],
    { 'k:{"containerPort":80,"protocol":"TCP"}': { "f:name": {} } },
    [{ name: "t" }],
  ],
  [
    "an item that is there twice appears twice",
    [{ name: "a" }, { name: "a" }],
    { 'k:{"name":"a"}': {} },
    [{ name: "a" }, { name: "a" }],
  ],
  ["items of a set", ["x", "b", "a"], { 'v:"a"': {}, 'v:"b"': {} }, ["b", "a"]],
  ["items by index", [1, 2, 3], { "i:1": {} }, [2]],
  ["a map that became a scalar is owned as a whole", { a: "text" }, { "f:a": { "f:b": {} } }, { a: "text" }],
  ["null stays null", { a: null }, { "f:a": {} }, { a: null }],
];

describe("project", () => {
  test.each(projections)("the owned part: %s", (_name, value, fields, owned) => {
    expect(project(value, fields)).toEqual(owned);
  });
});

const owned = (fieldsV1: JsonObject, object: JsonObject = web): JsonObject => ({
  ...object,
  metadata: {
    ...(object.metadata as JsonObject),
    managedFields: [
      { manager: "kubectl", operation: "Update", fieldsV1: { "f:spec": {} } },
      { manager: "starling", operation: "Update", fieldsV1: { "f:status": {} } },
      { manager: "starling", operation: "Apply", subresource: "scale", fieldsV1: { "f:spec": {} } },
      { manager: "starling", operation: "Apply", fieldsV1 },
    ],
  },
});

const env = (...names: readonly string[]): JsonObject => ({
  env: names.map((name) => ({ name, value: name })),
  metadata: {},
});
const envFields = {
  "f:env": { 'k:{"name":"A"}': { "f:value": {} }, 'k:{"name":"B"}': { "f:value": {} } },
};

describe("ownedDigests", () => {
  test("the digests are undefined when Starling applied nothing", () => {
    expect(ownedDigests(web)).toBeUndefined();
  });

  test("the digests stay when fields of others change", () => {
    const fields = { "f:metadata": { "f:labels": { "f:app": {} } } };
    const other = { ...web, spec: { replicas: 9 } };
    expect(ownedDigests(owned(fields, other))).toEqual(ownedDigests(owned(fields)));
  });

  test("a changed value changes the digest of values only", () => {
    const fields = { "f:spec": { "f:replicas": {} } };
    const before = ownedDigests(owned(fields));
    const after = ownedDigests(owned(fields, { ...web, spec: { replicas: 4 } }));
    expect(after?.ownedHash).toBe(before?.ownedHash);
    expect(after?.valuesHash).not.toBe(before?.valuesHash);
  });

  test("a re-ordered list changes the digest of values", () => {
    const before = ownedDigests(owned(envFields, env("A", "B")));
    const after = ownedDigests(owned(envFields, env("B", "A")));
    expect(after?.valuesHash).not.toBe(before?.valuesHash);
  });

  test("foreign items between the own ones do not change the digests", () => {
    const before = ownedDigests(owned(envFields, env("A", "B")));
    const after = ownedDigests(owned(envFields, env("A", "X", "B")));
    expect(after).toEqual(before);
  });

  test("a lost path changes the digest of paths", () => {
    const before = ownedDigests(owned({ "f:spec": { "f:replicas": {} }, "f:metadata": {} }));
    const after = ownedDigests(owned({ "f:metadata": {} }));
    expect(after?.ownedHash).not.toBe(before?.ownedHash);
  });

  test("integers that JavaScript numbers cannot tell apart have different digests", () => {
    const fields = { "f:n": {} };
    const a = ownedDigests(owned(fields, { metadata: {}, n: 9007199254740993n }));
    const b = ownedDigests(owned(fields, { metadata: {}, n: 9007199254740992n }));
    expect(a?.valuesHash).not.toBe(b?.valuesHash);
  });
});

test.each<readonly [string, JsonObject, JsonObject, JsonObject]>([
  ["apart", { "f:a": {} }, { "f:b": {} }, { "f:a": {}, "f:b": {} }],
  ["nested", { "f:a": { "f:x": {} } }, { "f:a": { "f:y": {} } }, { "f:a": { "f:x": {}, "f:y": {} } }],
  [
    "a leaf beside children keeps its own ownership",
    { "f:a": {} },
    { "f:a": { "f:y": {} } },
    { "f:a": { ".": {}, "f:y": {} } },
  ],
  ["equal leaves", { "f:a": {} }, { "f:a": {} }, { "f:a": {} }],
])("the union of two field sets: %s", (_name, a, b, union) => {
  expect(unionFields(a, b)).toEqual(union);
});
