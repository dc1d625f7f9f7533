import { describe, expect, test } from "vitest";
import { allSay, ana, begin, ownPaths, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

test("a cluster that returns counts once while it catches up, and as ready after that, during a stage run of another stage", async () => {
  const made = await worldOf(
    { c1: "canary", c2: "canary", r1: "rest" },
    { ...rings, maxConcurrent: 3, maxUnreachable: 1 },
  );
  const counts = async () => (await made.group()).status.clusters;
  await begin(made);
  await made.finish("c1");
  await made.finish("c2", "Unreachable");
  await made.plan();
  const updatingTo = { selected: 3, changing: 1, failed: 0 };
  expect(await counts()).toEqual({ ...updatingTo, ready: 1, unreachable: 1, waiting: 0 });
  await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
  await made.observe("c2", "Reachable");
  await made.plan();
  expect(await counts()).toEqual({ ...updatingTo, ready: 1, unreachable: 0, waiting: 1 });
  await made.operate({});
  await begin(made);
  expect(await counts()).toEqual({ ...updatingTo, changing: 2, ready: 1, unreachable: 0, waiting: 0 });
  await made.finish("c2");
  await made.plan();
  expect(made.stages()).toEqual({ canary: "1", rest: "- (1)" });
  expect(await counts()).toEqual({ ...updatingTo, ready: 2, unreachable: 0, waiting: 0 });
});

test("a cluster that failed before, and whose rendering fails now, counts once as failed", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, maxFailures: 2 }, ownPaths);
  await made.rollOut();
  await made.observe("a", "Failed", { reason: "ObjectsFailed" });
  await made.setSource("bbb");
  await made.plan();
  await made.renderAll("no kind", (row) => row.path === "clusters/a");
  await begin(made);
  await allSay(made, "Ready");
  made.advanceClock(60);
  await made.plan();
  expect(made.stages()).toEqual({ all: "2" });
  expect((await made.group()).status).toMatchObject({
    state: "Degraded",
    clusters: { selected: 3, ready: 2, failed: 1 },
  });
});

test("clusters that wait in a halted stage, and failed with the rollout before, count once", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 2 });
  await begin(made);
  await allSay(made, "Failed");
  expect((await made.group()).status).toMatchObject({
    state: "Halted",
    clusters: { selected: 3, ready: 0, failed: 2, waiting: 1 },
  });
  await made.setGroup({ maxConcurrent: 1 });
  await revise(made, "bbb");
  await allSay(made, "Failed");
  expect(made.stageRun("all").counts).toMatchObject({ Failed: 1, Rendering: 2 });
  expect((await made.group()).status).toMatchObject({
    state: "Halted",
    clusters: { selected: 3, ready: 0, failed: 2, waiting: 1 },
  });
});

test("a group whose waiting catch-ups are not tried any more is Degraded, not Rolling", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 1 });
  await made.rollOut();
  for (const name of ["b", "c", "d"]) await made.addCluster(name, "all");
  await begin(made);
  for (let check = 0; check < 2; check++) await allSay(made, "Failed");
  expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 2 });
  const { state, clusters, conditions } = (await made.group()).status;
  expect({ state, clusters }).toMatchObject({
    state: "Degraded",
    clusters: { selected: 4, ready: 1, failed: 2, waiting: 1 },
  });
  expect(conditions[0]?.message).toContain("; 1 more cluster does not catch up because of that; to try again: ");
  const { version } = made.rolloutState();
  await made.plan();
  expect(made.rolloutState().version).toBe(version);
});

test("the members of a stage that no rollout has reached count as waiting", async () => {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 1 });
  await begin(made);
  await allSay(made, "Failed");
  expect((await made.group()).status).toMatchObject({
    state: "Halted",
    clusters: { selected: 4, ready: 0, changing: 0, failed: 1, unreachable: 0, waiting: 3 },
  });
});

test("a cluster that joined and whose rendering failed counts as failed", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, ownPaths);
  await made.rollOut();
  await made.addCluster("c", "all");
  await made.plan();
  await made.renderAll("no kind");
  await made.plan();
  expect((await made.group()).status).toMatchObject({
    state: "Degraded",
    clusters: { selected: 3, ready: 2, failed: 1, waiting: 0 },
  });
});

test("a failed cluster that became ready by itself counts as ready, both as a target and as a catch-up", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures: 1 });
  await begin(made);
  await made.finish("a");
  await made.finish("b", "Failed");
  await made.plan();
  await made.addCluster("c", "all");
  await begin(made);
  await made.finish("c", "Failed");
  await made.plan();
  const status = async () => (await made.group()).status;
  expect(await status()).toMatchObject({ state: "Degraded", clusters: { selected: 3, ready: 1, failed: 2 } });
  for (const name of ["b", "c"]) {
    await made.observe(name, "Ready");
    made.advanceClock(60);
    await made.plan();
  }
  expect(await status()).toMatchObject({ state: "Complete", clusters: { selected: 3, ready: 3, failed: 0 } });
  // It is still paused, and gets its turn by a reconcile.
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 1 });
  await made.operate({ reconcile: ana(made.now) });
  await playOn(made);
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  expect(await made.sync("c")).not.toHaveProperty("paused");
});

test("a reachable cluster that waits for its turn in a suspended group counts once", async () => {
  const made = await worldOf(["a", "b", "c", "d"], { maxConcurrent: 4, maxUnreachable: 2 });
  await begin(made);
  for (const [name, phase] of [
    ["a", "Unreachable"],
    ["b", "Unreachable"],
    ["c", "Ready"],
    ["d", "Ready"],
  ] as const)
    await made.finish(name, phase);
  await made.plan();
  await made.operate({ suspended: ana(made.now) });
  await made.observe("a", "Reachable");
  await made.plan();
  expect(made.rolloutState().catchUps.waiting).toBe(1);
  made.advanceClock(60);
  await made.plan();
  expect((await made.group()).status.clusters).toEqual({
    ...{ selected: 4, ready: 2, changing: 0, failed: 0, unreachable: 2, waiting: 0 },
  });
});

describe("a cluster that its stage passed without, during a stage run of another stage", () => {
  const pace = { maxConcurrent: 4, maxUnreachable: 2, maxFailures: 1 };
  const updatingTo = { changing: 1, waiting: 0 };

  /** `c2` and `c3` are unreachable, `c4` has failed; `rest` goes on. */
  async function leftBehind(): Promise<PlannerWorld> {
    const ring = { c1: "canary", c2: "canary", c3: "canary", c4: "canary", r1: "rest" };
    const made = await worldOf(ring, { ...rings, ...pace });
    await begin(made);
    await made.finish("c1");
    for (const name of ["c2", "c3"]) await made.finish(name, "Unreachable");
    await made.finish("c4", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1", rest: "- (1)" });
    expect(await clusters(made)).toEqual({ ...updatingTo, selected: 5, ready: 1, failed: 1, unreachable: 2 });
    return made;
  }

  const clusters = async (made: PlannerWorld) => (await made.group()).status.clusters;

  test("a cluster that is unregistered no longer counts", async () => {
    const made = await leftBehind();
    await made.removeCluster("c2");
    await made.plan();
    expect(await clusters(made)).toEqual({ ...updatingTo, selected: 4, ready: 1, failed: 1, unreachable: 1 });
    await made.removeCluster("c4");
    await made.plan();
    expect(await clusters(made)).toEqual({ ...updatingTo, selected: 3, ready: 1, failed: 0, unreachable: 1 });
  });

  test("a cluster that moves to another stage counts there", async () => {
    const made = await leftBehind();
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await made.addCluster("c2", "rest");
    await made.plan();
    await made.operate({});
    await made.plan();
    expect((await clusters(made))?.unreachable).toBe(1);
  });

  test("a cluster that returns several times is subtracted once", async () => {
    const made = await leftBehind();
    for (let time = 0; time < 2; time++) {
      await made.observe("c2", "Reachable");
      await made.plan();
      await made.finish("c2", "Unreachable");
      await made.plan();
    }
    await made.observe("c2", "Reachable");
    await made.plan();
    await made.finish("c2");
    await made.plan();
    expect(await clusters(made)).toEqual({ ...updatingTo, selected: 5, ready: 2, failed: 1, unreachable: 1 });
  });
});

describe("a cluster that joined and is unreachable", () => {
  async function away(): Promise<PlannerWorld> {
    const made = await worldOf({ c: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await made.addCluster("new", "rest");
    await made.plan();
    await made.finish("new", "Unreachable");
    await revise(made, "bbb");
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    return made;
  }
  const counts = async (made: PlannerWorld) => (await made.group()).status.clusters;
  const updatingTo = { selected: 4, changing: 1, failed: 0, waiting: 0 };

  test("the cluster counts as unreachable during a stage run of another stage", async () => {
    const made = await away();
    expect(await counts(made)).toEqual({ ...updatingTo, ready: 2, unreachable: 1 });
    expect(made.rolloutState()).toMatchObject({ catchUps: { waiting: 0, changing: 0, failed: 0, away: 1 } });
  });

  test("the cluster catches up when it is reachable again, and counts once", async () => {
    const made = await away();
    await made.observe("new", "Reachable");
    await made.plan();
    expect(await counts(made)).toEqual({ ...updatingTo, changing: 2, ready: 2, unreachable: 0 });
    await made.finish("new");
    await made.plan();
    expect(await counts(made)).toEqual({ ...updatingTo, ready: 3, unreachable: 0 });
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("the cluster is a target of its stage's next rollout, and its catch-up is cleared", async () => {
    const made = await away();
    await made.finish("c");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await playOn(made, 4);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect(made.rows("CatchUp")).toEqual([]);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("the cluster counts once when a stage run finds it unreachable", async () => {
    const made = await away();
    await made.setGroup({ ...rings, maxConcurrent: 4, maxUnreachable: 2 });
    await made.finish("c");
    await made.plan();
    await made.finish("r1");
    await made.finish("new", "Unreachable");
    await made.plan();
    expect(made.stageRun("rest").counts).toMatchObject({ Assigned: 1, Unreachable: 1, Succeeded: 1 });
    expect(await counts(made)).toEqual({ ...updatingTo, ready: 2, unreachable: 1 });
    await made.observe("new", "Reachable");
    await made.plan();
    expect(await counts(made)).toEqual({ ...updatingTo, changing: 2, ready: 2, unreachable: 0 });
  });

  test("the cluster counts as ready when a stage run has updated it", async () => {
    const made = await away();
    await made.setGroup({ ...rings, maxConcurrent: 4 });
    await made.finish("c");
    await made.plan();
    await made.finish("new");
    await made.plan();
    expect(await counts(made)).toEqual({ ...updatingTo, changing: 2, ready: 2, unreachable: 0 });
  });

  test("the cluster counts as failed, and no longer as a catch-up, when its stage passes without its rendering", async () => {
    const made = await worldOf({ r1: "all", r2: "all" }, { maxConcurrent: 2, maxFailures: 1 }, ownPaths);
    await made.rollOut();
    await made.addCluster("new", "all");
    await begin(made);
    await made.finish("new", "Unreachable");
    await made.setSource("bbb");
    await made.plan();
    expect(made.rolloutState().catchUps).toMatchObject({ away: 1 });
    await made.renderAll("no kind", ({ path }) => path === "clusters/new");
    await playOn(made, 4);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 2, Failed: 1 } });
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
    expect(made.rows("CatchUp")).toEqual([]);
  });

  test("the cluster no longer counts when it leaves", async () => {
    const made = await away();
    await made.removeCluster("new");
    await made.plan();
    expect(await counts(made)).toEqual({ ...updatingTo, selected: 3, ready: 2, unreachable: 0 });
    expect(made.rows("CatchUp")).toEqual([]);
  });
});
