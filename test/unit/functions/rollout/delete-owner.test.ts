import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { allSay, ana, begin, lease, names, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const go = (made: PlannerWorld, cascade: "delete" | "orphan") =>
  made.operate({ deletion: { ...ana(made.now), cascade } });
const actions = (made: PlannerWorld) =>
  Object.fromEntries(made.rows<SyncRow>("SyncOnCluster").map(({ cluster, desired }) => [cluster, desired.action]));
const isGone = (made: PlannerWorld) => made.rows("SyncGroup").length === 0;

describe("a deletion of a group", () => {
  test("a deletion goes through the stages in their order", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    expect(actions(made)).toEqual({ c1: "delete", r1: "apply" });
    await allSay(made, "Ready");
    expect(actions(made)).toEqual({ r1: "delete" });
    await allSay(made, "Ready");
    expect(isGone(made)).toBe(true);
  });

  test("a deletion reaches every cluster, also after the stages have changed", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await made.setGroup({ maxConcurrent: 2 });
    await go(made, "delete");
    await playOn(made, 4);
    expect(isGone(made)).toBe(true);
    expect(actions(made)).toEqual({});
  });

  test("a deletion waits for an attempt that is applying, and not for a cluster that joined", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 4 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("c1", "Applying");
    await made.addCluster("new", "rest");
    await go(made, "delete");
    await made.plan();
    expect((await made.sync("c1"))?.desired).toMatchObject({ action: "apply", revision: "main@sha1:bbb" });
    await made.finish("c1");
    await playOn(made, 3);
    expect(isGone(made)).toBe(true);
    expect(made.rows("SyncOnCluster")).toEqual([]);
    expect(made.rows("CatchUp")).toEqual([]);
  });

  test("a deletion also removes clusters that wait to catch up", async () => {
    const made = await worldOf(names(4), { maxConcurrent: 2 });
    await made.rollOut();
    for (const name of names(4, "n")) await made.addCluster(name, "all");
    await made.plan();
    expect(made.rolloutState().catchUps.waiting).toBeGreaterThan(0);
    await go(made, "delete");
    await playOn(made, 8);
    expect(isGone(made)).toBe(true);
    expect([made.rows("SyncOnCluster"), made.rows("CatchUp"), made.rows("Slot")]).toEqual([[], [], []]);
  });

  test("a deletion that failed on a cluster is not complete, whatever the budget: the group reports it, and a reconcile tries again", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures: 1 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.observe("a", "Failed", { reason: "DeleteFailed" });
    await made.observe("b", "Gone");
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Succeeded" });
    const { status } = await made.group();
    expect(status).toMatchObject({ state: "Deleting", conditions: [{ reason: "DeletionFailed" }] });
    expect(status.conditions[0]?.message).toMatch(
      /1 of 2 clusters failed .*a: DeleteFailed; fix that and reconcile, or .*orphan/,
    );
    expect((await made.sync("a"))?.desired.action).toBe("delete");

    const { deletion } = (await made.group()).operations;
    if (deletion === undefined) throw new Error("the deletion is forgotten");
    await made.operate({ deletion, reconcile: ana(made.now) });
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned", b: "Succeeded" });
    await made.observe("a", "Gone");
    for (let check = 0; check < 3; check++) await made.plan();
    expect(isGone(made)).toBe(true);
    expect(made.rows("SyncOnCluster")).toEqual([]);
  });

  test("a deletion that failed on a cluster that was not ready before is not complete, and starts no new rollout by itself", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
    await made.rollOut();
    await made.observe("a", "Verifying");
    await go(made, "delete");
    await made.plan();
    await made.observe("b", "Gone");
    for (let check = 0; check < 4; check++) {
      if ((await made.sync("a"))?.paused === undefined) await made.observe("a", "Failed", { reason: "DeleteFailed" });
      await made.plan();
    }
    expect(made.rolloutState().last).toBe(2);
    expect((await made.group()).status).toMatchObject({
      state: "Deleting",
      conditions: [{ reason: "DeletionFailed" }],
    });
  });

  test("a deletion waits for an unreachable cluster and names it, whatever the budget", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.observe("a", "Unreachable");
    await made.observe("b", "Gone");
    for (let check = 0; check < 3; check++) await made.plan();
    const { status } = await made.group();
    expect(status).toMatchObject({ state: "Deleting" });
    expect(status.conditions[0]?.message).toMatch(/a does not answer, .* starling delete cluster\/a --cascade=orphan/);
    await made.observe("a", "Reachable");
    await made.plan();
    await made.observe("a", "Gone");
    for (let check = 0; check < 3; check++) await made.plan();
    expect(isGone(made)).toBe(true);
  });

  test("a deletion names each cluster that is still unreachable", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    for (const name of ["a", "b"]) await made.observe(name, "Unreachable");
    await made.observe("c", "Gone");
    await made.plan();
    const message = async () => (await made.group()).status.conditions[0]?.message;
    expect(await message()).toMatch(/^1 of 3 clusters done; a, b do not answer, /);
    await made.observe("a", "Reachable");
    await made.plan();
    await made.finish("a");
    await made.plan();
    expect(await message()).toMatch(/^2 of 3 clusters done; b does not answer, /);
  });

  test("a deletion goes on without clusters that are removed, however many were unreachable", async () => {
    const made = await worldOf(names(13), { maxConcurrent: "100%" });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    for (const name of names(13)) await made.observe(name, name === "c012" ? "Gone" : "Unreachable");
    await made.plan();
    for (const name of names(12)) await made.removeCluster(name);
    await playOn(made, 3);
    expect(isGone(made)).toBe(true);
  });

  test("a deletion goes on when the unreachable cluster is removed, as its message advises", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.observe("a", "Unreachable");
    await made.observe("b", "Gone");
    await made.plan();
    await made.removeCluster("a");
    await playOn(made, 3);
    expect(isGone(made)).toBe(true);
    expect(actions(made)).toEqual({ a: "orphan" });
  });

  test("a deletion goes on without a cluster that is removed before its turn", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.removeCluster("b");
    await playOn(made, 3);
    expect(isGone(made)).toBe(true);
  });

  test("a deletion reaches a cluster that moved to a stage whose other clusters are already done", async () => {
    const fleet = { c1: "canary", r1: "rest", r2: "rest" };
    const made = await worldOf(fleet, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.addCluster("r1", "canary");
    await made.finish("c1");
    await made.plan();
    expect((await made.sync("r1"))?.desired.action).toBe("apply");
    await made.finish("r2");
    await made.plan();
    expect((await made.sync("r1"))?.desired.action).toBe("delete");
    await playOn(made, 4);
    expect(isGone(made)).toBe(true);
    expect(actions(made)).toEqual({});
  });

  test("a deletion takes over from a rollout that has halted", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await begin(made);
    await allSay(made, "Failed");
    await go(made, "delete");
    await playOn(made, 4);
    expect(isGone(made)).toBe(true);
  });

  test("a deletion completes for a group that was never planned and has the name of an earlier group", async () => {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    await go(made, "orphan");
    await made.plan();
    await made.setGroup({});
    const row = await made.group();
    const another: SyncGroupRow = { ...row, version: row.version + 1, uid: "uid-of-another" };
    await made.table.write([{ put: another }]);
    await go(made, "delete");
    await playOn(made, 3);
    expect(isGone(made)).toBe(true);
    expect(actions(made)).toEqual({ a: "orphan" });
  });

  test("a deletion of a group that never rolled anything out completes at once", async () => {
    const made = await worldOf([], {});
    await go(made, "delete");
    await playOn(made, 1);
    expect(isGone(made)).toBe(true);
  });
});

describe("a deletion that leaves the objects", () => {
  test("an orphaning deletion removes the rows that lead to the group, and its rollout state is never due again", async () => {
    const made = await worldOf(["a"], {}, [...web, { name: "two", source: "app" }]);
    await made.rollOut();
    const source = { namespace: "shop", name: "app" };
    const other = keys.uses(source, { ...owner, name: "other" });
    const [type, rest] = ["Uses", { schema: rowSchema, version: 1 }] as const;
    const entries = [keys.owner(owner), keys.uses(source, owner), other];
    for (const key of entries) await made.table.write([{ put: { ...key, ...rest, type } as Row }]);
    await go(made, "orphan");
    await made.plan();
    expect(made.rows("Uses")).toMatchObject([other]);
    expect(made.rolloutState().last).toBe(1);
    expect(made.rolloutState()).not.toHaveProperty("dueKey");
  });

  test("an orphaning deletion needs no slots and no workers", async () => {
    const made = await worldOf(names(30), { maxConcurrent: 1 });
    await made.rollOut();
    made.sender.take();
    await go(made, "orphan");
    await made.plan();
    expect(isGone(made)).toBe(true);
    expect(new Set(Object.values(actions(made)))).toEqual(new Set(["orphan"]));
    expect(made.sender.take().filter(({ to }) => to === "apply")).toEqual([]);
  });

  test("an orphaning deletion forgets every Sync of a group with many templates", async () => {
    const templates = names(10, "t").map((name) => ({ name, source: "app" }));
    const made = await worldOf(names(20), { maxConcurrent: "100%" }, templates);
    await made.rollOut();
    await go(made, "orphan");
    await made.plan();
    expect(isGone(made)).toBe(true);
    expect(made.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.action !== "orphan")).toEqual([]);
  });

  test("an orphaning deletion stops a cascading deletion in progress", async () => {
    const made = await worldOf(names(5), { maxConcurrent: 2 });
    await made.rollOut();
    await go(made, "delete");
    await made.plan();
    await made.observe("c000", "Gone");
    await made.plan();
    expect(Object.values(actions(made)).filter((action) => action === "delete")).toHaveLength(2);
    await go(made, "orphan");
    await made.plan();
    expect(isGone(made)).toBe(true);
    expect(new Set(Object.values(actions(made)))).toEqual(new Set(["orphan"]));
    expect(made.rows("Slot")).toEqual([]);
  });

  test("an orphaning deletion goes through although the group is suspended", async () => {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    await made.operate({ suspended: ana(made.now), deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    expect(isGone(made)).toBe(true);
  });

  test("an orphaning deletion does not wait for a slot that is kept for a worker", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" }, web);
    await begin(made);
    await made.observe("a", "Applying");
    await lease(made, "a", { fence: 1, seconds: 3600 });
    made.advanceClock(61);
    await made.plan();
    expect(made.slots()[0]?.releasing).toBeDefined();
    await go(made, "orphan");
    await made.plan();
    expect(isGone(made)).toBe(true);
  });
});

test("a deletion that failed on a cluster still reports it when that cluster moves to another stage", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  await made.plan();
  await made.finish("c1", "Failed");
  await made.plan();
  await made.addCluster("c1", "rest");
  await made.plan();
  expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", counts: { Failed: 1, Skipped: 0 } });
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" }, reconcile: ana(made.now) });
  await playOn(made, 4);
  expect(made.rows("SyncOnCluster")).toEqual([]);
});
