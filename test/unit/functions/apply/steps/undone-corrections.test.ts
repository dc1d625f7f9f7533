import { describe, expect, test } from "vitest";
import { countCorrections, isLeftAway, sortDrift } from "#functions/apply/steps/undone-corrections.ts";
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
const sorted = (entry: InventoryEntry, how: "missing" | "replaced" | "changed") =>
  sortDrift([{ id, how } as DriftedObject], { ...emptyInventory("set"), entries: [entry] });

test.each([
  ["missing", "it is deleted, or its label is removed, each time, and after 5 corrections it is left alone;"],
  ["replaced", "another object is made under its name each time, and after 5 corrections it is left alone;"],
] as const)("an object that is %s each time is left alone after five corrections, with a message", (how, beginning) => {
  const { toCorrect, leftAlone } = sorted(known({ state: how }), how);
  expect(toCorrect).toEqual([]);
  expect(leftAlone).toMatchObject([{ object: "ConfigMap shop/c", reason: "Drifted" }]);
  expect(leftAlone[0]?.message.startsWith(beginning), leftAlone[0]?.message).toBe(true);
});

test.each([
  ["was never undone", record, true],
  ["was undone four times", known({ rounds: 4, inAll: 4 }), true],
  ["was undone five times", known({}), false],
  ["was undone in another way five times", known({ state: "replaced" }), true],
  ["was undone in any way nine times", known({ state: "replaced", inAll: 9 }), true],
  ["was undone in any way ten times", known({ state: "replaced", inAll: 10 }), false],
])("the number of corrections decides about an object that %s", (_what, entry, isPutBack) => {
  expect(sorted(entry, "missing").toCorrect).toHaveLength(isPutBack ? 1 : 0);
  expect(isLeftAway(entry, "missing")).toBe(!isPutBack);
});

const ofWhom = (more: Partial<NonNullable<InventoryEntry["undone"]>>) => {
  const entry = known({ state: "missing", by: "kubectl-scale", fields: "spec.replicas", ...more });
  const { leftAlone } = sorted({ ...entry, undone: { ...entry.undone, state: "changed" } as never }, "changed");
  return leftAlone[0]?.message;
};

test.each<[string, string | undefined, string]>([
  [
    "the writer, the fields and the count, and advises to leave replicas out where something scales",
    ofWhom({}),
    "kubectl-scale undoes spec.replicas each time, and after 5 corrections it is left alone; leave replicas out of the manifest where a HorizontalPodAutoscaler, or who else it is, scales it; a reconcile puts it back",
  ],
  [
    "other fields, and advises to leave them out or to end the other writer",
    ofWhom({ fields: "data.replicasOfMine" }),
    "kubectl-scale undoes data.replicasOfMine each time, and after 5 corrections it is left alone; leave them out of the manifest, or end what the other does; a reconcile puts it back",
  ],
  [
    "replicas wherever they are",
    ofWhom({ fields: "replicas" }),
    "kubectl-scale undoes replicas each time, and after 5 corrections it is left alone; leave replicas out of the manifest where a HorizontalPodAutoscaler, or who else it is, scales it; a reconcile puts it back",
  ],
  [
    "replicas among other fields",
    ofWhom({ fields: "data.k, replicas and 2 more", rounds: 7 }),
    "kubectl-scale undoes data.k, replicas and 2 more each time, and after 7 corrections it is left alone; leave replicas out of the manifest where a HorizontalPodAutoscaler, or who else it is, scales it; a reconcile puts it back",
  ],
  [
    "the last of several writers, and the count in all",
    ofWhom({ rounds: 4, inAll: 11, fields: "data.k" }),
    "several undo it, kubectl-scale last with data.k, each time, and after 11 corrections it is left alone; leave them out of the manifest, or end what the other does; a reconcile puts it back",
  ],
])("the message about a repeated change names %s", (_what, message, expected) => {
  expect(message).toBe(expected);
});

describe("the count of corrections of an object", () => {
  const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "shop" } };
  const made = { rendering: [manifest], defaultNamespace: undefined, isAsked: false };
  const other: InventoryEntry = { ...record, id: { ...id, name: "other" } };

  function counted(before: InventoryEntry | undefined, how: "missing" | "replaced", more: Partial<typeof made> = {}) {
    const inventory = { ...emptyInventory("set"), entries: before === undefined ? [] : [before] };
    const drifted = [{ id, how } as DriftedObject];
    const [entry, unchanged] = countCorrections([record, other], { ...made, ...more, drifted, inventory });
    expect(unchanged).toEqual(other);
    return entry?.undone;
  }

  test.each<[string, InventoryEntry | undefined, boolean, { readonly rounds: number; readonly inAll: number }]>([
    ["for the first time", record, false, { rounds: 1, inAll: 1 }],
    ["that was never recorded", undefined, false, { rounds: 1, inAll: 1 }],
    ["that had the same state before", known({ rounds: 2, inAll: 3 }), false, { rounds: 3, inAll: 4 }],
    [
      "that had another state before",
      known({ state: "replaced", rounds: 2, inAll: 3 }),
      false,
      { rounds: 1, inAll: 4 },
    ],
    ["that a person asked for", known({ rounds: 2, inAll: 3 }), true, { rounds: 1, inAll: 1 }],
  ])("a correction of an object %s is counted", (_what, before, isAsked, expected) => {
    const by = { by: "somebody", fields: "fields of the manifest" };
    expect(counted(before, "missing", { isAsked })).toEqual({ ...expected, state: "missing", ...by });
  });

  test("a correction is counted for an object with the Sync's namespace, and not for an object that is not in git", () => {
    const homeless = { ...manifest, metadata: { name: "c" } } as typeof manifest;
    expect(counted(record, "missing", { rendering: [homeless] })).toBeUndefined();
    const inShop = { rendering: [homeless], defaultNamespace: "shop" as never };
    expect(counted(record, "missing", inShop)).toMatchObject({ rounds: 1 });
  });
});
