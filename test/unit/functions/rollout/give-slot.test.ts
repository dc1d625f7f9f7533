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
  // The next stage run assigns it: its snapshot has the new registration.
  ["registered anew", (made: PlannerWorld) => made.addCluster("a", "all", { uid: "anew" }), ["SLOT#a 2", "SLOT#b 2"]],
])("a cluster that is %s after a check has read it is assigned nothing by that check", async (_what, act, expected) => {
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
])(
  "a cluster that was assigned something before, and is %s during a check, is assigned nothing by that check either",
  async (_what, act) => {
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
  },
);

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

describe("a cluster that has more Syncs of a group than fit into a transaction", () => {
  /**
   * Templates were removed one after the other while the cluster did not answer; a group has at most 20 templates at
   * once.
   */
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
  /** Adds a Sync that was assigned for a template that the group no longer has. */
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
    ["that is no longer selected", (made: PlannerWorld) => made.setGroup({ maxConcurrent: 1 }, web, { names: ["b"] })],
    [
      "whose group is orphaned",
      (made: PlannerWorld) => made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } }),
    ],
    [
      "that is unregistered while its group is in deletion",
      async (made: PlannerWorld) => {
        await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
        await made.removeCluster("a");
      },
    ],
  ])("a cluster %s is forgotten with all its Syncs", async (_what, act) => {
    const made = await overfull();
    await act(made);
    await playOn(made, 4);
    expect(left(made)).toEqual([]);
    expect([made.rows("Slot"), made.rows("CatchUp")]).toEqual([[], []]);
  });

  test("clusters that are not selected when their group is deleted are forgotten when they are unregistered", async () => {
    const made = await overfull();
    await made.addCluster("aa", "all");
    await playOn(made, 2);
    for (const name of names(130, "old")) await putOld(made, "aa", name);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.setGroup({ maxConcurrent: 1 }, web, { names: ["b"] });
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b"]);
    expect(made.stageRun("all").size).toBe(3);
    // A Sync is left like this when its cluster was deselected before.
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
    // The next cluster of that name may be another one.
    for (const { desired, observed } of forgotten) expect([desired.action, observed]).toEqual(["orphan", undefined]);
  });

  test("a cluster loses the Syncs of removed templates, and keeps only what it is still given, in as many steps as it takes", async () => {
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

  test("a cluster that is registered anew under its name is assigned the present templates, and nothing else", async () => {
    const made = await overfull();
    await made.addCluster("a", "all", { uid: "another" });
    await playOn(made, 4);
    expect(left(made).map(({ name }) => name)).toEqual(["web.app"]);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });
});

test("clusters for which most templates are disabled are assigned in as many steps as it takes", async () => {
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

test("a slot that goes on with a newer rollout no longer holds a Sync that is disabled for its cluster", async () => {
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
