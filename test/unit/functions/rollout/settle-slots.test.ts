import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { allSay, ana, begin, lease, names, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const clustersWithSlot = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

describe("a slot", () => {
  test("is given back by who answers again before anybody saw it away, and it has another turn", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.observe("a", "Unreachable");
    await made.observe("a", "Reachable");
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
  });

  test("is given back by nobody for what was observed about an older attempt", async () => {
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

  test("is kept by whoever was assigned something and whom no worker has begun, for as long as it takes", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" });
    await begin(made);
    made.advanceClock(86_400);
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
    expect(made.stageRun("all").phase).toBe("Updating");
  });

  test("is kept while a suspension goes on, and for the whole deadline after it", async () => {
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

describe("who fails", () => {
  async function failed(live: boolean): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1, maxFailures: 2, progressDeadline: "60s" });
    await begin(made);
    await made.observe("a", "Applying");
    await lease(made, "a", { fence: 7, seconds: live ? 120 : -1 });
    made.advanceClock(60);
    await made.plan();
    return made;
  }

  test("is parked: nothing is written there any more, until it is assigned anew", async () => {
    const made = await failed(false);
    expect(await made.sync("a")).toMatchObject({
      paused: { reason: expect.stringContaining("DeadlineExceeded") },
      // It is counted as that, though its worker says it is at it.
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

  test("and was seen ready after all has another turn when somebody asks, for nothing is written there before", async () => {
    const made = await failed(false);
    await made.observe("a", "Ready");
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.finish("b");
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    expect(await made.sync("a")).not.toHaveProperty("paused");
  });

  test("keeps its slot while a worker that began before may still be writing", async () => {
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

  test("and leaves while its worker may still be writing is skipped once, and keeps its slot until then", async () => {
    const made = await failed(true);
    await made.removeCluster("a");
    await made.plan();
    expect(made.stageRun("all").counts).toMatchObject({ Failed: 0, Skipped: 1 });
    expect(clustersWithSlot(made)).toEqual(["a"]);
    made.advanceClock(60);
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
  });

  test("gives it back as soon as another worker has the lease", async () => {
    const made = await failed(true);
    await lease(made, "a", { fence: 8, seconds: 120 });
    await made.plan();
    expect(clustersWithSlot(made)).toEqual(["b"]);
  });

  test.each([
    ["a live lease", 7],
    ["none", undefined],
  ])(
    "keeps it while one works who took the lease when it was looked at: before that there was %s",
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

  test("counts once, however often its slot is looked at", async () => {
    const made = await failed(true);
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.stageRun("all").counts.Failed).toBe(1);
    expect(made.targets().filter(({ cluster }) => cluster === "a")).toHaveLength(1);
  });

  test("is nothing new to a worker that said so itself", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxFailures: 1 });
    await begin(made);
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Assigned" });
    expect((await made.sync("a"))?.paused).toMatchObject({ reason: "Invalid" });
  });
});

describe("of a cluster with two Syncs that fails", () => {
  const both = [...web, { name: "two", source: "app" }];

  test("that is parked which is not done", async () => {
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

  test("that is not parked which is gone", async () => {
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

  test("that is parked, too, of which an earlier attempt was done", async () => {
    const made = await worldOf(["a"], {}, both);
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("a", "Failed", { reason: "Invalid" });
    await made.plan();
    expect((await made.sync("a", "web.two"))?.paused).toMatchObject({ reason: "Invalid" });
  });
});

describe("a cluster that has a slot", () => {
  test.each(["Failed", "Unreachable"] as const)(
    "of a leg that another took the place of, and is %s with that, is no arrival",
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

  test("and whose Sync went with its Cluster is skipped, not waited for", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.removeCluster("a");
    await made.table.write([{ delete: keys.sync("a", "shop", "web.app") }]);
    await made.plan();
    expect(made.states()).toEqual({ a: "Skipped", b: "Assigned" });
    expect(await made.sync("a")).toBeUndefined();
  });

  test("and moves to another stage settles where it is, and only once", async () => {
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

  test("of a stage that is removed keeps it, and gives it back", async () => {
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
    // What the removed stage had not passed goes nowhere else.
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.rolloutState()).toMatchObject({
      catchUps: { changing: 0 },
      stages: [{ name: "rest", current: 3, changing: 0 }],
    });
  });

  test("of a stage that is removed and there again is counted once", async () => {
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

test("looks that find only other reasons write nothing, however many, and reach the last slot", async () => {
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

test("a cluster that failed when it came has not failed any more when it is ready with what its stage takes", async () => {
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
