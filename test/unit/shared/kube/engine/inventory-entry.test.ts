import { describe, expect, test } from "vitest";
import { entryOf, expiringPart, hasRemovedItself } from "#shared/kube/engine/inventory-entry.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
const own = { manager: "starling", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1" };
const live = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    ...{ name: "c", uid: "u-1", resourceVersion: "7", generation: 3 },
    managedFields: [{ ...own, fieldsV1: { "f:data": { "f:k": {} } } }],
  },
  data: { k: "1" },
};

test("an inventory entry identifies the object, and has digests of the fields that Starling owns", () => {
  const entry = entryOf(live as never, { id, version: "v1" });
  expect(entry).toMatchObject({ id, version: "v1", uid: "u-1", resourceVersion: "7", generation: 3 });
  expect(entry.ownedHash).toMatch(/^[\w-]{22}$/);
  const changed = entryOf({ ...live, data: { k: "2" } } as never, { id, version: "v1" });
  expect(changed.ownedHash).toBe(entry.ownedHash);
  expect(changed.valuesHash).not.toBe(entry.valuesHash);
});

test("the inventory entry of an object without Starling's fields is empty", () => {
  const bare = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } } as KubeObject;
  const nothing = { uid: "", resourceVersion: "", generation: 0, ownedHash: "", valuesHash: "" };
  expect(entryOf(bare, { id, version: "v1" })).toEqual({ id, version: "v1", ...nothing });
});

test.each([
  ["a Job that removes itself at once", "Job", { ttlSecondsAfterFinished: 0 }, true],
  ["a Job that removes itself", "Job", { ttlSecondsAfterFinished: 60 }, true],
  ["a Job that stays", "Job", {}, false],
  ["another kind", "Task", { ttlSecondsAfterFinished: 60 }, false],
])("an inventory entry records the lifetime of %s, if it has one", (_what, kind, spec, expires) => {
  const object = { apiVersion: "batch/v1", kind, metadata: { name: "j" }, spec };
  const recorded = { expiring: expect.stringMatching(/.+/), ttlSeconds: expect.any(Number) };
  expect(expiringPart(object)).toEqual(expires ? recorded : {});
});

describe("a Job that is gone has removed itself", () => {
  const made = { ...entryOf({ apiVersion: "batch/v1", kind: "Job", metadata: { name: "j" } }, { id, version: "v1" }) };
  const now = new Date("2026-11-20T09:00:00Z");
  const expiring = "sha256:1";
  test.each<[string, Partial<InventoryEntry>, boolean]>([
    [
      "when it was seen complete",
      { expiring, ttlSeconds: 86_400, createdAt: "2026-11-20T08:59:00Z", complete: true },
      true,
    ],
    ["when its lifetime may have ended", { expiring, ttlSeconds: 3600, createdAt: "2026-11-20T08:00:00Z" }, true],
    [
      "when its lifetime may have ended by the cluster's clock",
      { expiring, ttlSeconds: 30, createdAt: "2026-11-20T09:00:20Z" },
      true,
    ],
    ["when its lifetime was not recorded", { expiring, createdAt: "2026-11-20T08:59:00Z" }, true],
    ["not before its lifetime ended", { expiring, ttlSeconds: 86_400, createdAt: "2026-11-20T08:00:00Z" }, false],
    ["not when it had no lifetime", { createdAt: "2026-11-20T08:00:00Z" }, false],
  ])("a Job that is gone has removed itself %s: %s", (_when, part, expected) => {
    expect(hasRemovedItself({ ...made, ...part }, now)).toBe(expected);
  });
});
