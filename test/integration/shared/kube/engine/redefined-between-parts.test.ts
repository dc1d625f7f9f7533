/** A definition is changed while a set is applied in parts. The objects of the first part must still be compared. */
import { expect, test, vi } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import { type ApplySetRequest, type ApplySetResult, applySet } from "#shared/kube/engine/apply-set.ts";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import { definition, inSeconds, widget } from "#test/support/cluster-fixture.ts";
import { applyRequest, faultyEngineWorld, inventoryOf, recorded } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, watchedClient } from "#test/support/watched-client.ts";

const cluster = forAllTests(faultyEngineWorld);

const setOf = (group: string) => [
  widget(group, "default/first", { size: "s", extra: "e" }),
  widget(group, "default/second"),
];

async function loseField(group: string): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
  const pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/extra";
  await cluster.raw("PATCH", path, { as: "json-patch", body: [{ op: "remove", path: pointer }] });
  const first = `/apis/${group}/v1/namespaces/default/widgets/first`;
  await vi.waitUntil(async () => stringAt(await cluster.raw("GET", first), "spec", "extra") === undefined);
}

const keyOf = (object: ManifestObject) => objectIdKey(objectIdOf(object));

/** Applies the first object, and all the rest after the definition has lost a field of it. */
type Parts = Readonly<Record<"first" | "second", (objects: readonly ManifestObject[]) => Partial<ApplySetRequest>>>;

/** Ends the time of a run after an object was applied. */
function untilApplied(isCut: (call: ClientCall) => boolean) {
  const deadline = inSeconds(60);
  let now = new Date();
  const client = watchedClient(cluster.client, async (call) => {
    if (isCut(call)) now = deadline;
  });
  return { client, deadline, clock: { now: () => now, sleep: async () => {} } };
}

async function inTwo(set: string, group: string, parts: Parts): Promise<readonly [Inventory, ApplySetResult]> {
  await cluster.applied(`${set}-kinds`, [definition(group)]);
  const objects = setOf(group);
  const begun = recorded(inventoryOf(set), await cluster.apply(set, objects, parts.first(objects)));
  expect(begun.definitions).toEqual({ [`widgets.${group}`]: 1 });
  await loseField(group);
  const inventory = begun;
  return [begun, await cluster.apply(set, objects, { inventory, ...parts.second(objects) })];
}

test.each<[string, Parts]>([
  [
    "a step",
    {
      first: ([first]) => ({ part: new Set(first === undefined ? [] : [first]) }),
      second: ([, second]) => ({ part: new Set(second === undefined ? [] : [second]) }),
    },
  ],
  [
    "a run",
    {
      first: ([first]) => ({ part: new Set(first === undefined ? [] : [first]) }),
      second: ([first]) => ({ done: new Set(first === undefined ? [] : [keyOf(first)]) }),
    },
  ],
])("objects that were applied in %s before are compared by the definition of that time", async (what, parts) => {
  const group = `${what.slice(2)}.example.com`;
  const [begun, result] = await inTwo(`in-${what.slice(2)}`, group, parts);
  expect(result.outcome).toBe("applied");
  const inventory = recorded(begun, result);
  const report = await detectDrift(cluster.client, inventory);
  expect(report.drifted.map(({ id, how }) => `${id.name} ${how}`)).toEqual(["first changed"]);
});

test("a run that is cut off records the definitions that it read before it applied anything of their kinds", async () => {
  const group = "cut.example.com";
  await cluster.applied("cut-kinds", [definition(group)]);
  const many = Array.from({ length: 20 }, (_, index) => widget(group, `default/w${index}`));
  const objects = [...setOf(group), ...many];
  const { client, ...time } = untilApplied(({ method }) => method === "apply");
  const result = await applySet(client, applyRequest("cut", objects, time));
  expect(result).toMatchObject({ timeWasUp: true, definitions: { [`widgets.${group}`]: 1 } });
  const begun = recorded(inventoryOf("cut"), result);
  await loseField(group);
  const done = new Set(begun.entries.map(({ id }) => objectIdKey(id)));
  const inventory = recorded(begun, await cluster.apply("cut", objects, { inventory: begun, done }));
  const report = await detectDrift(cluster.client, inventory);
  expect(report.drifted.map(({ id, how }) => `${id.name} ${how}`)).toEqual(["first changed"]);
});

test("the second run records nothing of objects that it did not apply if the first run recorded nothing", async () => {
  const group = "unread.example.com";
  await cluster.applied("unread-kinds", [definition(group)]);
  const objects = setOf(group);
  const [first] = objects;
  const before = await cluster.applied("unread", first === undefined ? [] : [first]);
  const begun = { ...before, definitions: {} };
  await loseField(group);
  const done = new Set(begun.entries.map(({ id }) => objectIdKey(id)));
  const result = await cluster.apply("unread", objects, { inventory: begun, done });
  expect(result).toMatchObject({ outcome: "applied" });
  expect(result.definitions).toEqual({});
  const report = await detectDrift(cluster.client, recorded(begun, result));
  expect(report.drifted.map(({ id }) => id.name)).toEqual(["first"]);
});

test("a correction records nothing of objects that were only compared", async () => {
  const group = "corrected.example.com";
  await cluster.applied("corrected-kinds", [definition(group)]);
  const objects = setOf(group);
  const inventory = await cluster.applied("corrected", objects);
  await loseField(group);
  const [, second] = objects;
  const result = await cluster.apply("corrected", second === undefined ? [] : [second], { inventory });
  const report = await detectDrift(cluster.client, recorded(inventory, result));
  expect(report.drifted.map(({ id }) => id.name)).toEqual(["first"]);
});

test("a set that is applied in one run uses the current definition", async () => {
  const group = "whole.example.com";
  await cluster.applied("whole-kinds", [definition(group)]);
  const objects = [widget(group, "default/first"), widget(group, "default/second")];
  const inventory = await cluster.applied("whole", objects);
  const grown = definition(group);
  const names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", shortNames: ["w"] };
  const spec = { ...(grown as { spec?: object }).spec, names };
  await cluster.applied("whole-kinds", [{ ...grown, spec } as never]);
  const result = await applySet(cluster.client, applyRequest("whole", objects, { inventory, clock: systemClock }));
  expect(result).toMatchObject({ outcome: "applied", definitions: { [`widgets.${group}`]: 2 } });
});
