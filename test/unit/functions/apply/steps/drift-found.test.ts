import { expect, test } from "vitest";
import { driftFound } from "#functions/apply/steps/drift-found.ts";
import type { DriftedObject } from "#shared/kube/engine/detect-drift.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

const at = new Date("2026-11-21T09:00:00Z");
const row = { desired: desiredOf({}), observed: observedOf({}) };

const manifest = (name: string): ManifestObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "shop" },
  stringData: { password: "new-secret" },
});

function changed(name: string): DriftedObject {
  const live = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name,
      namespace: "shop",
      managedFields: [
        {
          manager: "kubectl-edit",
          operation: "Update",
          time: "2026-11-21T08:59:00Z",
          fieldsV1: { "f:stringData": { "f:password": {} } },
        },
      ],
    },
    stringData: { password: "stolen-secret" },
  };
  return {
    id: { group: "", kind: "Secret", namespace: "shop", name },
    how: "changed",
    lastWriter: "kubectl-edit at 08:59",
    live,
  };
}

function away(how: DriftedObject["how"]): DriftedObject {
  return { id: { group: "apps", kind: "Deployment", namespace: "shop", name: how }, how };
}

test("the drift report names each object with its fields and their writers, and without values", () => {
  const drifted = [changed("token"), away("missing"), away("replaced"), away("terminating")];
  const found = driftFound(row, { drifted, at, corrected: true, rendering: [manifest("token")] });
  expect(found).toEqual({
    at: "2026-11-21T09:00:00.000Z",
    objects: 4,
    corrected: true,
    named: [
      { object: "Secret shop/token", reason: "Changed", message: "stringData.password, by kubectl-edit" },
      { object: "Deployment shop/missing", reason: "Missing", message: "it was deleted, or its label was removed" },
      { object: "Deployment shop/replaced", reason: "Replaced", message: "another object has its name" },
      { object: "Deployment shop/terminating", reason: "Terminating", message: "it is being deleted" },
    ],
  });
  expect(JSON.stringify(found)).not.toMatch(/secret"/);
});

test("the drift report counts the objects that it does not name, and names no fields where the rendering is lost", () => {
  const drifted = Array.from({ length: 7 }, (_, index) => changed(`s${index}`));
  const { named = [], objects } = driftFound(row, { drifted, at, corrected: false, rendering: undefined });
  expect([objects, named.length]).toEqual([7, 5]);
  expect(named[0]).toEqual({
    object: "Secret shop/s0",
    reason: "Changed",
    message: "last written by kubectl-edit at 08:59",
  });
});

test("the drift report stays the same while the drift stays", () => {
  const first = driftFound(row, {
    drifted: [changed("a")],
    at: new Date("2026-11-21T07:00:00Z"),
    corrected: false,
    rendering: [],
  });
  const conditions = [{ type: "Drifted", status: "True", reason: "DriftDetected", message: "", since: "" }] as const;
  const known = { ...row, observed: observedOf({ drift: first, conditions }) };
  expect(driftFound(known, { drifted: [changed("a")], at, corrected: false, rendering: [] })).toBe(first);
});
