import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { allSay, ana, begin, lease, names, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const clustersWithSlot = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

describe("a slot of a cluster", () => {
  test("a cluster that is reachable again before the planner saw it unreachable gets another turn", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.observe("a", "Unreachable");
    await made.observe("a", "Reachable");
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
  });

  test("a cluster keeps its slot when only an older attempt was observed", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxUnreachable: 0 });
    await begin(made);
    await made.observe("a", "Unreachable");
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
    await made.observe("a", "Reachable");
    await made.observe("b", "Ready");
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    await made.observe("a", "Ready", { attempt: 1 });
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["a"]);
  });

  test("a cluster keeps its slot as long as no worker has begun its attempt", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" });
    await begin(made);
    made.advanceClock(86_400);
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
    expect(made.stageRun("all").phase).toBe("Updating");
  });

  test("a cluster keeps its slot during a suspension, and for the whole deadline after it", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" });
    await begin(made);
    await made.observe("a", "Applying");
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    made.advanceClock(3600);
    await made.plan();
    await made.operate({ resumed: ana(made.now) });
    await made.plan();
    made.advanceClock(59);
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
    made.advanceClock(1);
    await made.plan();
    expect(made.states()).toEqual({ a: "Failed" });
  });
});

describe("a cluster that fails", () => {
  async function failed(live: boolean): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1, maxFailures: 2, progressDeadline: "60s" });
    await begin(made);
    await made.observe("a", "Applying");
    await lease(made, "a", { fence: 7, seconds: live ? 120 : -1 });
    made.advanceClock(60);
    await made.plan();
    return made;
  }

  test("a failed cluster is paused: no worker writes to it until it is assigned again", async () => {
    const made = await failed(false);
    expect(await made.sync("a")).toMatchObject({
      paused: { reason: expect.stringContaining("DeadlineExceeded") },
      // The index counts it as Failed, although its worker reports Applying.
      stateSk: expect.stringMatching(/^Failed#/),
    });
    expect(made.states()).toEqual({ a: "Failed", b: "Assigned" });
    await made.observe("b", "Ready");
    await made.plan();
    await made.observe("c", "Ready");
    await made.plan();
    await revise(made, "bbb");
    expect(await made.sync("a")).not.toHaveProperty("paused");
    expect((await made.sync("a"))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:bbb" });
  });

  test("a paused cluster that turns out to be ready gets another turn by a reconcile", async () => {
    const made = await failed(false);
    await made.observe("a", "Ready");
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.finish("b");
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    expect(await made.sync("a")).not.toHaveProperty("paused");
  });

  test("a failed cluster keeps its slot while a worker that began before may still be writing", async () => {
    const made = await failed(true);
    expect(made.stageRun("all").counts).toMatchObject({ Failed: 1, Assigned: 0 });
    expect(clustersWithSlot(made)).toEqual(["a"]);
    made.advanceClock(59);
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["a"]);
    made.advanceClock(1);
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
  });

  test("a failed cluster that leaves is skipped once, and keeps its slot while its worker may still be writing", async () => {
    const made = await failed(true);
    await made.removeCluster("a");
    await made.plan();
    expect(made.stageRun("all").counts).toMatchObject({ Failed: 0, Skipped: 1 });
    expect(clustersWithSlot(made)).toEqual(["a"]);
    made.advanceClock(60);
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
  });

  test("a failed cluster releases its slot as soon as another worker has the lease", async () => {
    const made = await failed(true);
    await lease(made, "a", { fence: 8, seconds: 120 });
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
  });

  test.each([
    ["a live lease", 7],
    ["none", undefined],
  ])(
    "a failed cluster keeps its slot when a worker takes the lease during the check: before that there was %s",
    async (_name, fence) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxFailures: 2, progressDeadline: "60s" });
      await begin(made);
      await made.observe("a", "Applying");
      if (fence !== undefined) await lease(made, "a", { fence, seconds: 600 });
      made.advanceClock(60);
      const { table } = made;
      const write = table.write.bind(table);
      let isTaken = false;
      table.write = async (writes) => {
        if (!isTaken && writes.some((one) => "put" in one && one.put.type === "Target")) {
          isTaken = true;
          await lease(made, "a", { fence: 8, seconds: 600 });
        }
        return write(writes);
      };
      await made.plan();
      expect(made.slots()).toMatchObject([{ cluster: "a", releasing: { fence: 8 } }]);
    },
  );

  test("a failed cluster counts once, however often its slot is checked", async () => {
    const made = await failed(true);
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.stageRun("all").counts.Failed).toBe(1);
    expect(made.targets().filter(({ cluster }) => cluster === "a")).toHaveLength(1);
  });

  test("a cluster whose worker reported the failure itself is paused, and the next cluster gets the slot", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxFailures: 1 });
    await begin(made);
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Assigned" });
    expect((await made.sync("a"))?.paused).toMatchObject({ reason: "Invalid" });
  });
});

describe("a failed cluster with two Syncs", () => {
  const both = [...web, { name: "two", source: "app" }];

  test("the planner pauses the Sync that is not done, and not the one that is done", async () => {
    const made = await worldOf(["a"], {}, both);
    await begin(made);
    await made.observe("a", "Ready", { name: "web.two" });
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect(await made.sync("a")).toMatchObject({
      ...{ paused: { reason: "Invalid", at: made.now.toISOString() }, stateSk: "Failed#a#web.app" },
    });
    expect(await made.sync("a", "web.two")).not.toHaveProperty("paused");
  });

  test("the planner does not pause a Sync that is deleted", async () => {
    const made = await worldOf(["a"], {}, both);
    await made.rollOut();
    await made.setGroup({}, web);
    await revise(made, "bbb");
    await made.observe("a", "Gone", { name: "web.two" });
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect((await made.sync("a"))?.paused).toBeDefined();
    expect(await made.sync("a", "web.two")).not.toHaveProperty("paused");
  });

  test("the planner also pauses a Sync of which only an earlier attempt was done", async () => {
    const made = await worldOf(["a"], {}, both);
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect((await made.sync("a", "web.two"))?.paused).toMatchObject({ reason: "Invalid" });
  });
});

describe("a cluster that has a slot and whose stage or membership changes", () => {
  test.each(["Failed", "Unreachable"] as const)(
    "a cluster that ends %s in a slot of a superseded stage run causes no catch-up",
    async (phase) => {
      const made = await worldOf(["a", "b", "c"], { maxConcurrent: 2, maxUnreachable: 2 });
      await begin(made);
      await made.observe("a", "Applying");
      await made.finish("b", "Failed");
      await revise(made, "bbb");
      expect(made.stages()).toEqual({ all: "- (2)" });
      await made.finish("a", phase);
      await made.plan();
      expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
      expect(made.rows("CatchUp")).toEqual([]);
    },
  );

  test("a cluster that is removed together with its Sync is skipped, and its slot is released", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.removeCluster("a");
    await made.table.write([{ delete: keys.sync("a", "shop", "web.app") }]);
    await made.plan();
    expect(made.states()).toEqual({ a: "Skipped", b: "Assigned" });
    expect(await made.sync("a")).toBeUndefined();
  });

  test("a cluster that moves to another stage finishes its attempt, and counts once", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await revise(made, "bbb");
    expect(clustersWithSlot(made)).toEqual(["c1", "c2"]);
    await made.addCluster("c2", "rest");
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["c1", "c2"]);
    await allSay(made, "Ready");
    expect(made.stageRun("canary")).toMatchObject({ phase: "Passed", counts: { Succeeded: 2 } });
    await made.rollOut();
    expect((await made.sync("c2"))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:bbb" });
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("a cluster of a stage that is removed keeps its slot, and releases it when it is done", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.setGroup({ maxConcurrent: 1, stages: [{ name: "rest" }] });
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["c1"]);
    expect(made.rolloutState().catchUps.changing).toBe(1);
    expect(made.stageRun("canary").phase).toBe("Superseded");
    await allSay(made, "Ready");
    expect(made.rolloutState()).toMatchObject({ stages: [{ name: "rest", current: 1, changing: 0 }] });
    // The rollout that the removed stage had not passed goes no further.
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.rolloutState()).toMatchObject({
      catchUps: { changing: 0 },
      stages: [{ name: "rest", current: 3, changing: 0 }],
    });
  });

  test("a slot of a stage that is removed and added again counts once", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.setGroup({ maxConcurrent: 1, stages: [{ name: "rest" }] });
    await made.plan();
    await made.setGroup({ ...rings, maxConcurrent: 1 });
    await made.plan();
    await allSay(made, "Ready");
    expect(made.rolloutState().catchUps.changing).toBe(0);
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  });
});

test("a check that finds only new reasons writes nothing, and reaches the last of many slots", async () => {
  const made = await worldOf(names(130), { maxConcurrent: "100%" });
  await begin(made);
  for (const name of names(130)) await made.observe(name, "Verifying", { reason: "NotReady" });
  await made.plan();
  for (const name of names(130)) await made.observe(name, "Verifying", { reason: "StillNotReady" });
  const before = made.rolloutState().version;
  await made.plan();
  expect(made.rolloutState().version).toBe(before);
  await made.observe("c129", "Ready");
  await made.plan();
  expect(made.states()).toMatchObject({ c000: "Assigned", c129: "Succeeded" });
});

test("a failed catch-up is cleared when the cluster is ready with the rollout of the stage run in progress", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.addCluster("n", "all");
  await begin(made);
  await made.finish("n", "Failed");
  await made.plan();
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 1 });
  await revise(made, "bbb");
  await made.finish("n");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ phase: "Updating", counts: { Succeeded: 1 } });
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
});
