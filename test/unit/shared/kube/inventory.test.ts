import { describe, expect, test } from "vitest";
import {
  changeInventory,
  emptyInventory,
  type Inventory,
  type InventoryEntry,
  readInventory,
  writeInventory,
} from "#shared/kube/inventory.ts";

const entry = (name: string, kind = "ConfigMap"): InventoryEntry => ({
  id: { group: "", kind, namespace: "n", name },
  version: "v1",
  uid: `uid-${name}`,
  resourceVersion: "10",
  generation: 0,
  ownedHash: "o",
  valuesHash: "v",
});
const inventory = (...entries: readonly InventoryEntry[]): Inventory => ({ ...emptyInventory("set"), entries });

describe("the text of an inventory", () => {
  test("the text of an inventory does not depend on the order of its entries", () => {
    expect(writeInventory(inventory(entry("a"), entry("b")))).toBe(writeInventory(inventory(entry("b"), entry("a"))));
  });

  test("an inventory is the same after writing and reading", () => {
    const before: Inventory = {
      ...inventory({ ...entry("a"), expiring: "sha256:x" }),
      definitions: { "widgets.example.com": 3 },
    };
    expect(readInventory(writeInventory(before), "set")).toEqual(before);
  });

  test.each([
    ["nothing", ""],
    ["another shape", "{}"],
    ["a newer schema", '{"schema":2,"setId":"set","entries":[],"definitions":{}}'],
    ["another set", '{"schema":1,"setId":"other","entries":[],"definitions":{}}'],
  ])("a text with %s is refused, instead of read as an empty inventory", (_name, text) => {
    expect(() => readInventory(text, "set")).toThrow();
  });
});

describe("changeInventory", () => {
  test("a change replaces recorded entries, drops settled ones and keeps all others", () => {
    const before = inventory(entry("kept"), entry("gone"), entry("moved"));
    const moved = { ...entry("moved"), resourceVersion: "11" };
    const after = changeInventory(before, {
      recorded: [moved, entry("new"), entry("added")],
      settled: [entry("gone").id],
    });
    expect(after.entries.map(({ id, resourceVersion }) => `${id.name} ${resourceVersion}`)).toEqual([
      "added 10",
      "kept 10",
      "moved 11",
      "new 10",
    ]);
  });

  test("a change keeps the definitions unless it has new ones", () => {
    const before = { ...emptyInventory("set"), definitions: { "widgets.example.com": 1 } };
    expect(changeInventory(before, { recorded: [], settled: [] }).definitions).toEqual({ "widgets.example.com": 1 });
    expect(changeInventory(before, { recorded: [], settled: [], definitions: {} }).definitions).toEqual({});
  });
});
