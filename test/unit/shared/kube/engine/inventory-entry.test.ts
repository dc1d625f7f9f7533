import { expect, test } from "vitest";
import { entryOf, expiringPart } from "#shared/kube/engine/inventory-entry.ts";
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

test("what is recorded of an object is who it is, and what in it is ours", () => {
  const entry = entryOf(live as never, { id, version: "v1" });
  expect(entry).toMatchObject({ id, version: "v1", uid: "u-1", resourceVersion: "7", generation: 3 });
  expect(entry.ownedHash).toMatch(/^[\w-]{22}$/);
  const changed = entryOf({ ...live, data: { k: "2" } } as never, { id, version: "v1" });
  expect(changed.ownedHash).toBe(entry.ownedHash);
  expect(changed.valuesHash).not.toBe(entry.valuesHash);
});

test("what holds nothing of ours, and says nothing of itself, is recorded as nothing", () => {
  const bare = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } } as KubeObject;
  const nothing = { uid: "", resourceVersion: "", generation: 0, ownedHash: "", valuesHash: "" };
  expect(entryOf(bare, { id, version: "v1" })).toEqual({ id, version: "v1", ...nothing });
});

test.each([
  ["a Job that removes itself at once", "Job", { ttlSecondsAfterFinished: 0 }, true],
  ["a Job that removes itself", "Job", { ttlSecondsAfterFinished: 60 }, true],
  ["a Job that stays", "Job", {}, false],
  ["another kind", "Task", { ttlSecondsAfterFinished: 60 }, false],
])("%s", (_what, kind, spec, expires) => {
  const object = { apiVersion: "batch/v1", kind, metadata: { name: "j" }, spec };
  expect(expiringPart(object)).toEqual(expires ? { expiring: expect.stringMatching(/.+/) } : {});
});
