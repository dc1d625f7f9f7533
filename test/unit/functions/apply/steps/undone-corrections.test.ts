import { expect, test } from "vitest";
import { isLeftAway, sortDrift } from "#functions/apply/steps/undone-corrections.ts";
import type { DriftedObject } from "#shared/kube/engine/detect-drift.ts";
import { emptyInventory, type InventoryEntry } from "#shared/kube/inventory.ts";

const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
const record: InventoryEntry = {
  id,
  version: "v1",
  uid: "u",
  resourceVersion: "1",
  generation: 0,
  ownedHash: "",
  valuesHash: "",
};
const known = (undone: Partial<NonNullable<InventoryEntry["undone"]>>): InventoryEntry => ({
  ...record,
  undone: { state: "missing", rounds: 5, inAll: 5, by: "a-stranger", fields: "data.k", ...undone },
});
const sorted = (entry: InventoryEntry, how: "missing" | "replaced") =>
  sortDrift([{ id, how } as DriftedObject], { ...emptyInventory("set"), entries: [entry] });

test.each([
  ["missing", "it is deleted, or its label is removed, each time, and after 5 corrections it is left alone;"],
  ["replaced", "another object is made under its name each time, and after 5 corrections it is left alone;"],
] as const)("what is %s each time is left alone in the end, and told as that", (how, told) => {
  const { toCorrect, leftAlone } = sorted(known({ state: how }), how);
  expect(toCorrect).toEqual([]);
  expect(leftAlone).toMatchObject([{ object: "ConfigMap shop/c", reason: "Drifted" }]);
  expect(leftAlone[0]?.message.startsWith(told), leftAlone[0]?.message).toBe(true);
});

test.each([
  ["was never undone", record, true],
  ["was undone four times", known({ rounds: 4, inAll: 4 }), true],
  ["was undone five times", known({}), false],
  ["was undone in another way five times", known({ state: "replaced" }), true],
  ["was undone in any way nine times", known({ state: "replaced", inAll: 9 }), true],
  ["was undone in any way ten times", known({ state: "replaced", inAll: 10 }), false],
])("an object that %s", (_what, entry, isPutBack) => {
  expect(sorted(entry, "missing").toCorrect).toHaveLength(isPutBack ? 1 : 0);
  expect(isLeftAway(entry, "missing")).toBe(!isPutBack);
});
