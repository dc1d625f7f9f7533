import { describe, expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import type { RolloutStateRow, SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Write } from "#shared/ports.ts";
import { ana, begin, names, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const syncs = (made: PlannerWorld) => made.rows<SyncRow>("SyncOnCluster");

test.each([
  ["deleted", (made: PlannerWorld) => made.removeCluster("a"), ["SLOT#b 1"]],
  // By the next one, of the leg that was sealed with it.
  ["registered anew", (made: PlannerWorld) => made.addCluster("a", "all", { uid: "anew" }), ["SLOT#a 2", "SLOT#b 2"]],
])("a cluster that is %s after it was looked at is given nothing by that look", async (_what, act, expected) => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.plan();
  await made.renderAll();
  const { table } = made;
  const write = table.write.bind(table);
  const given: string[] = [];
  let isActed = false;
  table.write = async (writes) => {
    const isGiving = writes.some((one) => "put" in one && one.put.type === "Slot");
    if (isGiving && !isActed) {
      isActed = true;
      await act(made);
    }
    await write(writes);
    for (const { sk, stageRun } of writes.flatMap(slotIn)) given.push(`${sk} ${stageRun?.snapshot}`);
  };
  await made.plan();
  expect(given).toEqual(expected);
});

function slotIn(write: Write): readonly SlotRow[] {
  return "put" in write && write.put.type === "Slot" ? [write.put as SlotRow] : [];
}

test.each([
  ["deleted", (made: PlannerWorld) => made.removeCluster("a")],
  ["registered anew", (made: PlannerWorld) => made.addCluster("a", "all", { uid: "anew" })],
])("one that had something once and is %s then is given nothing by that look either", async (_what, act) => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.removeCluster("a");
  await made.rollOut();
  await made.addCluster("a", "all", { uid: "second" });
  const { table } = made;
  const write = table.write.bind(table);
  let acts = 0;
  table.write = async (writes) => {
    const isGiving = writes.flatMap(slotIn).length > 0;
    if (isGiving && acts++ === 0) {
      await act(made);
      await expect(write(writes)).rejects.toMatchObject({ code: "Conflict" });
    }
    await write(writes);
  };
  await begin(made);
  expect(acts).toBeGreaterThan(0);
});

test("the deadline of a group is no later for a slot that is given after others", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "60s" });
  await begin(made);
  const first = later(made.now, 60);
  await made.observe("a", "Applying");
  await made.finish("b");
  made.advanceClock(10);
  await made.plan();
  await made.addCluster("c", "all");
  await made.plan(made.table, []);
  expect(made.slots()).toHaveLength(2);
  expect(made.rolloutState().deadline).toBe(first);
});

describe("a cluster that has more of a group than fits a transaction", () => {
  /** Removed one after the other while it did not answer: a group has no more than 20 at once. */
  async function overfull(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await made.rollOut();
    const templates = names(130, "old");
    for (const name of templates) await putOld(made, "a", name);
    const rolloutState = made.rolloutState();
    const remembers: RolloutStateRow = {
      ...rolloutState,
      templates: ["app", ...templates],
      version: rolloutState.version + 1,
    };
    await made.table.write([{ put: remembers }]);
    return made;
  }
  /** One that was assigned for a template that is gone. */
  async function putOld(made: PlannerWorld, cluster: string, name: string): Promise<void> {
    const before = await made.sync(cluster);
    if (before === undefined) throw new Error("nothing was assigned");
    const own = { sk: `SYNC#shop#web.${name}`, name: `web.${name}`, stateSk: `Ready#${cluster}#web.${name}` };
    await made.table.write([{ put: { ...before, ...own, version: 1 } }]);
  }
  const left = (made: PlannerWorld) =>
    syncs(made).filter(({ cluster, desired }) => cluster === "a" && desired.action !== "orphan");

  test.each([
    ["that is unregistered", (made: PlannerWorld) => made.removeCluster("a")],
    ["that is selected no more", (made: PlannerWorld) => made.setGroup({ maxConcurrent: 1 }, web, { names: ["b"] })],
    [
      "whose group goes, and leaves the objects",
      (made: PlannerWorld) => made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } }),
    ],
    [
      "that is unregistered while its group goes",
      async (made: PlannerWorld) => {
        await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
        await made.removeCluster("a");
      },
    ],
  ])("%s is forgotten with all of it", async (_what, act) => {
    const made = await overfull();
    await act(made);
    await playOn(made, 4);
    expect(left(made)).toEqual([]);
    expect([made.rows("Slot"), made.rows("CatchUp")]).toEqual([[], []]);
  });

  test("and is selected no more when its group goes is forgotten when it is unregistered, and so is another", async () => {
    const made = await overfull();
    await made.addCluster("aa", "all");
    await playOn(made, 2);
    for (const name of names(130, "old")) await putOld(made, "aa", name);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.setGroup({ maxConcurrent: 1 }, web, { names: ["b"] });
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b"]);
    expect(made.stageRun("all").size).toBe(3);
    // As one is left whose cluster was selected no more before.
    const old = await made.sync("a", "web.old000");
    if (old === undefined) throw new Error("nothing was assigned");
    const orphan = { ...old, desired: { ...old.desired, action: "orphan" as const }, version: old.version + 1 };
    await made.table.write([{ put: orphan }]);
    await made.removeCluster("a");
    await made.removeCluster("aa");
    await playOn(made, 2);
    expect(made.rows("SyncGroup")).toEqual([]);
    const forgotten = syncs(made).filter(({ cluster }) => cluster !== "b");
    expect(forgotten).toHaveLength(262);
    // Whoever has its name next may be another.
    for (const { desired, observed } of forgotten) expect([desired.action, observed]).toEqual(["orphan", undefined]);
  });

  test("loses all that is gone, and keeps what it is not given any more for itself, whatever else a step holds", async () => {
    const parts = names(19, "part").map((name) => ({ name, source: "app" }));
    const rest = { name: "rest" };
    const stages = names(11, "s").map((name) => ({ name, clusters: { names: [name] }, optional: true }));
    const made = await worldOf(["a"], { stages: [...stages, rest] }, [...web, ...parts]);
    await made.rollOut();
    const old = names(130, "old");
    for (const name of old) await putOld(made, "a", name);
    const rolloutState = made.rolloutState();
    const templates = [...rolloutState.templates, ...old];
    const remembers: RolloutStateRow = { ...rolloutState, templates, version: rolloutState.version + 1 };
    await made.table.write([{ put: remembers }]);
    const overrides = [{ clusters: { all: true }, disabled: true }];
    await made.setGroup({ stages: [...stages, rest] }, [...web, ...parts.map((part) => ({ ...part, overrides }))]);
    await playOn(made, 6);
    expect(left(made).map(({ name }) => name)).toEqual(["web.app"]);
    expect(made.isThrough()).toBe(true);
  });

  test("and joins anew under its name, is assigned what there is now, and nothing else", async () => {
    const made = await overfull();
    await made.addCluster("a", "all", { uid: "another" });
    await playOn(made, 4);
    expect(left(made).map(({ name }) => name)).toEqual(["web.app"]);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });
});

test("clusters that are not given most of what they had are told in as many steps as it takes", async () => {
  const parts = names(19, "part").map((name) => ({ name, source: "app" }));
  const made = await worldOf(names(8), { maxConcurrent: "100%" }, [...web, ...parts]);
  await made.rollOut();
  const overrides = [{ clusters: { all: true }, disabled: true }];
  await made.setSource("bbb");
  await made.setGroup({ maxConcurrent: "100%" }, [...web, ...parts.map((part) => ({ ...part, overrides }))]);
  await playOn(made, 3);
  expect(syncs(made).filter(({ desired }) => desired.action === "apply")).toHaveLength(8);
  expect(made.isThrough()).toBe(true);
});

test("a slot that goes on with something else is no longer for what its cluster is not given any more", async () => {
  const both = [...web, { name: "old", source: "app" }];
  const left = { selector: { matchLabels: { ring: "left" } } };
  const rollout = { maxConcurrent: 2 };
  const made = await worldOf({ a: "left", b: "right" }, rollout, both);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("b", "Failed");
  await made.plan();
  expect(made.stageRun("all").phase).toBe("Halted");
  await made.setGroup(rollout, [
    ...web,
    { name: "old", source: "app", overrides: [{ clusters: left, disabled: true }] },
  ]);
  await revise(made, "ccc");
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("orphan");
  expect(made.slots().find(({ cluster }) => cluster === "a")?.attempts).toEqual({ "web.app": 3 });
});
