/** Faults that happened once in the planner, and must not happen again. */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { allSay, ana, begin, lease, names, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const syncs = (made: PlannerWorld) => made.rows<SyncRow>("SyncOnCluster");

/** 400 clusters, the given number of them canaries, before the first rollout. */
async function fourHundred(canaries: number, ...[strategy, ...more]: Parameters<PlannerWorld["setGroup"]>) {
  const fleet = Object.fromEntries(names(400).map((name, index) => [name, index < canaries ? "canary" : "rest"]));
  return worldOf(fleet, { ...rings, maxConcurrent: 20, ...strategy }, ...more);
}

test("a template that is added again stops its deletion on the clusters that still have the Sync", async () => {
  const both = [...web, { name: "data", source: "app" }];
  const clusters = names(7);
  const made = await worldOf(clusters, { maxConcurrent: 2 }, both);
  await made.rollOut();
  await made.setGroup({ maxConcurrent: 2 }, web);
  await made.plan();
  await made.finish("c000");
  await made.plan();
  const removed = syncs(made).filter(({ desired }) => desired.action === "delete");
  expect(removed.map(({ cluster }) => cluster)).toEqual(["c001", "c002"]);

  await made.setGroup({ maxConcurrent: 2 }, both);
  await made.plan();
  expect(syncs(made).filter(({ desired }) => desired.action === "delete")).toEqual([]);
  await made.rollOut();
  const attempts = syncs(made)
    .filter(({ name }) => name === "web.data")
    .map(({ desired }) => desired.attempt);
  // The first Sync was deleted and created again; the next two deletions were stopped; the others were never touched.
  expect(attempts).toEqual([1, 3, 3, 1, 1, 1, 1]);
});

describe("unreachable clusters in a later stage", () => {
  async function stalled(): Promise<PlannerWorld> {
    const made = await worldOf(
      { c1: "canary", r1: "rest", r2: "rest", r3: "rest", r4: "rest" },
      { ...rings, maxConcurrent: "100%" },
    );
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.plan();
    for (const name of ["r1", "r2"]) await made.finish(name, "Unreachable");
    for (const name of ["r3", "r4"]) await made.finish(name);
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("TooManyUnreachable");
    expect((await made.group()).status).toMatchObject({ state: "Stalled" });
    return made;
  }

  test("the other clusters get a repair although some clusters are unreachable", async () => {
    const made = await stalled();
    made.advanceClock(30 * 86_400);
    await revise(made, "fix");
    await made.finish("c1");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (3)" });
    for (const name of ["r3", "r4"]) await made.finish(name);
    await made.plan();
    expect((await made.sync("r3"))?.desired.revision).toBe("main@sha1:fix");
  });

  test("unreachable clusters are left out when the budget is raised, and catch up when they are reachable", async () => {
    const made = await stalled();
    await made.setGroup({ ...rings, maxConcurrent: "100%", maxUnreachable: 2 });
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    await made.observe("r1", "Reachable");
    await playOn(made, 3);
    expect((await made.sync("r1"))?.observed?.phase).toBe("Ready");
  });

  test("an unreachable cluster gets another turn as soon as it is reachable", async () => {
    const made = await stalled();
    await made.observe("r1", "Reachable");
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("Updating");
    await made.finish("r1");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });
});

describe("maxConcurrent limits the clusters that may be changing", () => {
  test("a cluster whose deadline is over keeps its slot until its worker is done", async () => {
    const made = await worldOf(names(11), { maxConcurrent: 1, maxFailures: 11, progressDeadline: "60s" });
    await begin(made);
    for (let round = 0; round < 5; round++) {
      for (const { cluster } of made.slots()) {
        await made.observe(cluster, "Retrying");
        await lease(made, cluster, { fence: 1, seconds: 3600 });
      }
      made.advanceClock(61);
      await made.plan();
    }
    expect(made.slots()).toHaveLength(1);
    expect(syncs(made)).toHaveLength(1);
    expect(syncs(made)[0]?.paused).toBeDefined();
  });

  test("clusters that failed in drift correction use slots like any other, and verify nothing", async () => {
    const made = await worldOf(names(20), { maxConcurrent: 2, maxFailures: 20 });
    await made.rollOut();
    for (const name of names(20)) await made.observe(name, "Failed", { reason: "DriftNotCorrected" });
    await revise(made, "bbb");
    expect(made.slots()).toHaveLength(2);
    for (let round = 0; round < 10; round++) {
      await allSay(made, "Failed");
      expect(made.slots().length).toBeLessThanOrEqual(2);
    }
    expect(made.stageRun("all")).toMatchObject({ phase: "NothingVerified", preexistingFailures: 20 });
    expect((await made.group()).status.state).toBe("Stalled");
  });
});

describe("a stage does not pass without a verified cluster", () => {
  test.each<[string, number, Parameters<PlannerWorld["setGroup"]>[0], "Unreachable" | "Failed"]>([
    ["2 of 2 canaries are unreachable with a maxUnreachable of 10 %", 2, { maxUnreachable: "10%" }, "Unreachable"],
    ["2 of 2 canaries are unreachable with a maxUnreachable of 100 %", 2, { maxUnreachable: "100%" }, "Unreachable"],
    ["6 of 6 canaries fail with a maxFailures of 5 %", 6, { maxFailures: "5%" }, "Failed"],
    ["6 of 6 canaries fail with a maxFailures of 100 %", 6, { maxFailures: "100%" }, "Failed"],
  ])("no other cluster is assigned anything when %s", async (_name, canaries, strategy, phase) => {
    const made = await fourHundred(canaries, strategy);
    await begin(made);
    for (let check = 0; check < 3; check++) await allSay(made, phase);
    expect(syncs(made)).toHaveLength(canaries);
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    expect(["Halted", "Stalled"]).toContain((await made.group()).status.state);
  });

  test("no other cluster is assigned the rollout when both canaries fail and were not ready before", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 4 });
    await made.rollOut();
    for (const name of ["c1", "c2"]) await made.observe(name, "Failed");
    await revise(made, "bbb");
    for (let check = 0; check < 3; check++) await allSay(made, "Failed");
    expect(made.stageRun("canary").phase).toBe("NothingVerified");
    expect((await made.sync("r1"))?.desired.attempt).toBe(1);
  });
});

test("a worker that holds the lease for another Sync does not use up this rollout's deadline", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
  await begin(made);
  await lease(made, "a", { fence: 3, seconds: 7200 });
  made.advanceClock(7000);
  await made.plan();
  expect(made.states()).toEqual({ a: "Assigned" });
  expect(made.stageRun("all").counts.Failed).toBe(0);
  await made.observe("a", "Applying");
  made.advanceClock(599);
  await made.plan();
  expect(made.states()).toEqual({ a: "Assigned" });
  made.advanceClock(1);
  await made.plan();
  expect(made.states()).toEqual({ a: "Failed" });
});

describe("a cluster that was not ready before a bad rollout", () => {
  async function unhealthyBefore(): Promise<PlannerWorld> {
    const made = await worldOf(names(4), { maxConcurrent: 4 });
    await made.rollOut();
    await made.observe("c000", "Failed");
    await revise(made, "bbb");
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", preexistingFailures: 1 });
    return made;
  }

  test("a preexisting failure does not halt the rollout that repairs it", async () => {
    const made = await unhealthyBefore();
    await made.finish("c001", "Failed");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    await revise(made, "cure");
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ rollout: 3, phase: "Updating", preexistingFailures: 1 });
  });

  test("a preexisting failure does not halt a repair that takes over its slot", async () => {
    const made = await unhealthyBefore();
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.observe("c000", "Verifying");
    await made.finish("c001", "Failed");
    await revise(made, "cure");
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ rollout: 3, phase: "Updating", preexistingFailures: 1 });
  });

  test("a failure halts the next rollout when the cluster was ready in between", async () => {
    const made = await unhealthyBefore();
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.finish("c001", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ rollout: 2, phase: "Halted" });
    // Its worker has written Ready, and the planner has not read it yet.
    await made.finish("c000");
    await made.setSource("ccc");
    await made.plan(made.table, []);
    await made.renderAll();
    await made.plan(made.table, []);
    expect((await made.sync("c000"))?.desired).toMatchObject({ rollout: 3 });
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ rollout: 3, phase: "Halted", preexistingFailures: 0 });
  });

  test("a retried preexisting failure does not halt the rollout, and halts it when the cluster was ready in between", async () => {
    const made = await unhealthyBefore();
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", preexistingFailures: 1 });
    await made.observe("c000", "Ready");
    await made.operate({ reconcile: ana(made.now) });
    await begin(made);
    await made.finish("c000", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", preexistingFailures: 0 });
  });
});

test("the first failure among clusters that were unreachable for a while halts the rollout", async () => {
  const made = await worldOf(names(6), { maxConcurrent: 1 });
  await made.rollOut();
  for (const name of names(5)) await made.observe(name, "Unreachable");
  await revise(made, "bad");
  for (let check = 0; check < 5; check++) await allSay(made, "Unreachable");
  await allSay(made, "Ready");
  expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 1, Unreachable: 5 });
  for (const name of names(5)) await made.observe(name, "Reachable");
  await made.plan();
  for (let check = 0; check < 5; check++) await allSay(made, "Failed");
  expect(made.stageRun("all")).toMatchObject({
    phase: "Halted",
    preexistingFailures: 0,
    counts: { Failed: 1, Waiting: 4 },
  });
});

describe("a repair that does not wait for unhealthy clusters", () => {
  async function unhealthy(): Promise<PlannerWorld> {
    const fleet = Object.fromEntries(names(60).map((name, index) => [name, index === 0 ? "canary" : "rest"]));
    const made = await worldOf(fleet, { ...rings, maxConcurrent: 40, maxFailures: "100%" });
    await begin(made);
    await made.finish("c000");
    await made.plan();
    for (const { cluster } of made.slots()) await made.observe(cluster, "Verifying", { reason: "NotReady" });
    expect(made.slots()).toHaveLength(39);
    return made;
  }

  test("a repair gets a slot in the first stage at once", async () => {
    const made = await unhealthy();
    await revise(made, "cure");
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "- (1)" });
    expect((await made.sync("c000"))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:cure" });
    expect(made.slots()).toHaveLength(40);
  });

  test("a repair takes over the slots of unhealthy clusters as soon as their stage run halts", async () => {
    const made = await unhealthy();
    await revise(made, "cure");
    await made.finish("c000");
    await made.setGroup({ ...rings, maxConcurrent: 40, maxFailures: 0 });
    await made.finish("c001", "Failed");
    await made.plan();
    await begin(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "- (2)" });
    const cured = syncs(made).filter(({ desired }) => desired.revision === "main@sha1:cure");
    expect(cured.length).toBeGreaterThan(38);
    expect(made.slots().length).toBeLessThanOrEqual(40);
  });
});
