import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { retagPatch, takeOverPatch } from "#shared/kube/managed-fields.ts";

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
