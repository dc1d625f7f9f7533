import { describe, expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import {
  allSay,
  ana,
  begin,
  type Group,
  names,
  ownPaths,
  playOn,
  revise,
  rings,
  web,
  worldOf,
} from "#test/support/planner-story.ts";

const catchUps = { waiting: 0, changing: 0, failed: 0 };

/** A stage of two clusters that has passed without `a`, which is unreachable. */
async function withoutA(rollout: Group[0] = {}) {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1, ...rollout });
  await begin(made);
  await made.finish("b");
  await made.finish("a", "Unreachable");
  await made.plan();
  return made;
}

describe("a cluster that becomes reachable again", () => {
  test("a cluster that returns after its stage has passed gets the stage's current rollout", async () => {
    const made = await withoutA();
    expect(made.stages()).toEqual({ all: "1" });
    expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { unreachable: 1 } });
    await made.observe("a", "Reachable");
    await playOn(made, 3);
    expect(made.rollouts()).toHaveLength(1);
    // The planner trusts its own reading until the index has caught up.
    made.advanceClock(60);
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
    expect(made.rolloutState().catchUps).toEqual(catchUps);
  });

  test("a cluster that returns also catches up by a message that names only it", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1 });
    await begin(made);
    await made.finish("b");
    await made.finish("a", "Unreachable");
    await made.plan(made.table, ["a", "b"]);
    await made.observe("a", "Reachable");
    await made.plan(made.table, ["b"]);
    expect((await made.sync("a"))?.desired.attempt).toBe(1);
    await made.plan(made.table, ["a"]);
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
  });

  test("a failed catch-up of a cluster that returns and becomes ready is cleared", async () => {
    const two = [...web, { name: "two", source: "app" }];
    const made = await worldOf(["a"], {}, two);
    await made.rollOut();
    await made.addCluster("b", "all");
    await begin(made);
    await made.observe("b", "Failed");
    await made.observe("b", "Ready", { name: "web.two" });
    await made.plan();
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 1 });
    await made.observe("b", "Unreachable", { name: "web.two" });
    await made.observe("b", "Reachable", { name: "web.two" });
    await playOn(made, 3);
    expect(made.rolloutState().catchUps).toEqual(catchUps);
    expect(made.rolloutState().stages).toMatchObject([{ failedCatchUps: 0 }]);
  });

  test("a cluster whose attempt was paused gets no other turn by its return", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures: 1 });
    await begin(made);
    await made.finish("b");
    await made.finish("a", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Failed: 1 } });
    for (const phase of ["Unreachable", "Reachable"] as const) await made.observe("a", phase);
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(1);
    expect(made.rolloutState().catchUps).toEqual(catchUps);
  });

  test("a cluster that is reported as reachable several times returns once", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxUnreachable: 1 });
    await begin(made);
    await made.finish("a", "Unreachable");
    await made.plan();
    await made.observe("a", "Reachable");
    for (let check = 0; check < 3; check++) await made.plan(made.table, ["a"]);
    expect(made.stageRun("all").counts).toMatchObject({ Waiting: 1, Assigned: 1, Unreachable: 0 });
    expect(made.stageRun("all").returned).toEqual([0]);
  });

  test("a cluster that is reported as reachable several times while it waits is counted once", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, maxUnreachable: 2 });
    await begin(made);
    await made.finish("c");
    for (const name of ["a", "b"]) await made.finish(name, "Unreachable");
    await made.plan();
    expect(made.stageRun("all").counts).toMatchObject({ Unreachable: 2, Superseded: 0 });
    await made.operate({ suspended: ana(made.now) });
    await made.observe("a", "Reachable");
    for (let check = 0; check < 3; check++) await made.plan(made.table, ["a"]);
    expect(made.rolloutState().catchUps).toMatchObject({ waiting: 1 });
    expect(made.stageRun("all").counts).toMatchObject({ Unreachable: 1, Superseded: 1 });
  });

  test("a cluster that returns while its stage is renamed catches up under the new name", async () => {
    const made = await withoutA();
    await made.observe("a", "Reachable");
    await made.setGroup({ maxConcurrent: 2, stages: [{ name: "prod" }] });
    await made.plan();
    expect(made.stages()).toEqual({ prod: "1" });
    await playOn(made, 2);
    expect(await made.sync("a")).toMatchObject({ desired: { attempt: 2 }, observed: { phase: "Ready" } });
  });

  test("a stage run that stalled for an unreachable cluster goes on when it returns, and the state says so", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 0 });
    await begin(made);
    await made.finish("a");
    await made.finish("b", "Unreachable");
    await made.plan();
    expect((await made.group()).status.state).toBe("Stalled");
    await made.observe("b", "Reachable");
    await made.plan();
    expect((await made.group()).status.state).toBe("Rolling");
    await made.finish("b");
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a cluster that left a halted stage run and returned keeps the stage's current rollout", async () => {
    const dev = { selector: { matchLabels: { env: "dev" } } };
    const made = await worldOf({}, { maxConcurrent: 2 }, web, dev);
    for (const name of ["a", "b"]) await made.addCluster(name, "all", { labels: { env: "dev" } });
    await made.rollOut();
    await revise(made, "bbb");
    await made.addCluster("b", "all", { labels: { env: "prod" } });
    await made.plan();
    await made.finish("a", "Failed");
    await made.plan();
    await made.addCluster("b", "all", { labels: { env: "dev" } });
    await made.plan();
    await made.finish("b", "Unreachable");
    await made.plan();
    await made.observe("b", "Reachable");
    await made.plan();
    await made.finish("b");
    await made.plan();
    expect((await made.sync("b"))?.observed?.applied).toMatchObject({ revision: "main@sha1:aaa", attempt: 5 });
    expect(made.stageRun("all")).toMatchObject({ rollout: 2, phase: "Halted", counts: { Failed: 1, Skipped: 1 } });
    expect(made.rolloutState().catchUps).toEqual(catchUps);
  });

  test("a cluster that returns during a stage run takes part in it, and does not go back to the rollout before", async () => {
    const made = await worldOf(
      { c1: "canary", r1: "rest", r2: "rest" },
      { ...rings, maxConcurrent: 3, maxUnreachable: 2 },
    );
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await begin(made);
    await made.finish("r1", "Unreachable");
    await made.plan();
    await made.observe("r1", "Reachable");
    await made.plan();
    expect((await made.sync("r1"))?.desired).toMatchObject({ revision: "main@sha1:bbb", attempt: 3 });
    expect(made.rolloutState().catchUps).toEqual(catchUps);
  });

  test("a cluster that returns and fails counts as a failed catch-up, and not against a stage run", async () => {
    const made = await withoutA();
    await made.observe("a", "Reachable");
    await made.plan();
    await allSay(made, "Failed");
    expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 1 }, stages: [{ current: 1, failedCatchUps: 1 }] });
    expect(made.stageRun("all").phase).toBe("Passed");
    made.advanceClock(60);
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { failed: 1, ready: 1 } });
  });

  test("a cluster whose catch-up fails several times counts once", async () => {
    const made = await withoutA({ maxFailures: 5 });
    for (let time = 0; time < 3; time++) {
      await made.observe("a", "Unreachable");
      await made.plan();
      const row = await made.sync("a");
      if (row === undefined) throw new Error("it was assigned");
      const { paused: _paused, ...rest } = row;
      await made.table.write([{ put: { ...rest, version: row.version + 1 }, when: { version: row.version } }]);
      await made.observe("a", "Reachable");
      await made.plan();
      await allSay(made, "Failed");
    }
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 1 });
    expect(made.rows("CatchUp")).toHaveLength(1);
  });
});

test("a catch-up that changes stage while it has a slot, and then is unreachable, stays one catch-up", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 4, maxUnreachable: 1 });
  await made.rollOut();
  await made.addCluster("new", "rest");
  await made.plan();
  expect((await made.sync("new"))?.desired.action).toBe("apply");
  await made.addCluster("new", "canary");
  await made.plan();
  await made.observe("new", "Unreachable");
  await made.observe("new", "Reachable");
  await playOn(made, 3);
  expect((await made.sync("new"))?.observed?.phase).toBe("Ready");
  expect(made.rolloutState().catchUps).toEqual(catchUps);
  expect(made.rows("CatchUp")).toEqual([]);
});

test("an unreachable target with a waiting catch-up returns to its stage run, however many targets are unreachable", async () => {
  const made = await worldOf(names(12), { maxConcurrent: "100%", maxUnreachable: 0 });
  await made.rollOut();
  for (const name of ["w", "x", "y"]) {
    await made.addCluster(name, "all");
    await begin(made);
    if (name !== "y") await made.finish(name, "Failed");
    await made.plan();
  }
  expect(made.rolloutState().catchUps).toMatchObject({ waiting: 1, failed: 2 });
  await revise(made, "bbb");
  await made.finish("y", "Unreachable");
  await made.plan();
  for (const name of names(11)) await made.finish(name, "Unreachable");
  await made.plan();
  expect(made.stageRun("all").counts).toMatchObject({ Unreachable: 12 });
  expect(made.stageRun("all").away).not.toContain("y");
  expect(made.rolloutState().catchUps).toMatchObject({ waiting: 1 });
  await made.observe("y", "Reachable");
  await made.plan();
  expect(made.stageRun("all").counts).toMatchObject({ Unreachable: 11, Succeeded: 0, Assigned: 4 });
});

test("an unreachable cluster that moves to another stage is no target of its old stage run, and returns in its new stage", async () => {
  const made = await worldOf(
    { c1: "canary", r1: "rest", r2: "rest" },
    { ...rings, maxConcurrent: 3, maxUnreachable: 0 },
  );
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await begin(made);
  await made.finish("r1");
  await made.finish("r2", "Unreachable");
  await made.plan();
  expect(made.stageRun("rest").phase).toBe("TooManyUnreachable");
  await made.addCluster("r2", "canary");
  await made.plan();
  expect(made.stageRun("rest")).toMatchObject({
    phase: "Passed",
    away: [],
    counts: { Succeeded: 1, Unreachable: 0, Skipped: 1 },
  });
  expect(made.targets().find(({ cluster }) => cluster === "r2")).toMatchObject({ reason: "moved to stage canary" });
  await made.finish("r2", "Unreachable");
  await made.plan();
  expect(made.rolloutState().catchUps).toEqual({ ...catchUps, away: 1 });
  await made.observe("r2", "Reachable");
  await playOn(made, 2);
  expect(made.rolloutState().catchUps).toEqual(catchUps);
  expect((await made.sync("r2"))?.observed?.applied?.revision).toBe("main@sha1:bbb");
});

test("a reachable cluster whose rendering failed is not tried at every check", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1, maxFailures: 1 }, ownPaths);
  await begin(made);
  await made.finish("b");
  await made.finish("a", "Unreachable");
  await made.plan();
  await made.setSource("bbb");
  await made.plan();
  await made.renderAll("no kind", ({ path }) => path === "clusters/a");
  await made.renderAll();
  await made.plan();
  await made.finish("b");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Failed: 1 } });
  await made.observe("a", "Reachable");
  await made.plan();
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 1 });
  const { version } = made.rolloutState();
  await made.plan();
  expect(made.rolloutState().version).toBe(version);
});

test("a cluster with one unreachable Sync keeps its slot while a worker may write another of its Syncs", async () => {
  const both = [...web, { name: "data", source: "app" }];
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, both);
  await begin(made);
  await made.observe("a", "Unreachable");
  await made.plan();
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a"]);
  await made.observe("a", "Unreachable", { name: "web.data" });
  await made.plan();
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b"]);
});

test("a cluster in its slot does not catch up a second time when one of its Syncs becomes reachable", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 2 }, [...web, { name: "data", source: "app" }]);
  await made.rollOut();
  await made.addCluster("b", "all");
  await begin(made);
  await made.observe("b", "Verifying", { name: "web.data" });
  await made.observe("b", "Reachable");
  await made.plan();
  expect(made.rolloutState().catchUps).toEqual({ ...catchUps, changing: 1 });
});

test("a failed catch-up whose cluster left does not keep other clusters from catching up", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 1 });
  await made.rollOut();
  await made.addCluster("b", "all");
  await made.plan();
  await allSay(made, "Failed");
  expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 1 }, stages: [{ failedCatchUps: 1 }] });
  await made.removeCluster("b");
  await made.plan();
  expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 0 }, stages: [{ failedCatchUps: 0 }] });
  await made.addCluster("c", "all");
  await playOn(made, 3);
  expect((await made.sync("c"))?.observed?.phase).toBe("Ready");
});

describe("a cluster that has caught up", () => {
  test("a cluster keeps the newer rollout that it got while it waited to catch up", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 2 }, ownPaths);
    await made.rollOut();
    await made.addCluster("z", "all");
    await made.plan();
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll(undefined, ({ artifactDigest }) => artifactDigest === digestOf("bbb"));
    await made.plan();
    await made.finish("z");
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned", z: "Succeeded" });
    await begin(made);
    expect((await made.sync("z"))?.desired).toMatchObject({ attempt: 1, revision: "main@sha1:bbb" });
    expect(made.rolloutState().catchUps).toEqual(catchUps);
  });

  test("a cluster keeps the rollout of the stage run in progress when its stage is renamed", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("a");
    await made.setGroup({ maxConcurrent: 1, stages: [{ name: "prod" }] });
    await playOn(made);
    expect(made.stages()).toEqual({ prod: "2" });
    for (const name of ["a", "b", "c"])
      expect((await made.sync(name))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:bbb" });
  });
});

test("a failed catch-up is not retried because another stage passed a rollout", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 4 });
  await made.rollOut();
  for (const ring of ["canary", "rest"]) await made.addCluster(`new-${ring}`, ring);
  await made.plan();
  for (const ring of ["canary", "rest"]) await made.finish(`new-${ring}`, "Failed");
  await made.plan();
  expect(made.rolloutState().catchUps).toMatchObject({ failed: 2 });
  await revise(made, "bbb");
  for (const cluster of ["c1", "new-canary"]) await made.finish(cluster);
  await made.plan();
  expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  expect(made.rolloutState()).toMatchObject({
    catchUps: { waiting: 0, failed: 1 },
    stages: [{ failedCatchUps: 0 }, { failedCatchUps: 1 }],
  });
});

test("catch-ups of a stage with too many failed catch-ups are passed over", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  for (const name of names(8, "a")) await made.addCluster(name, "canary");
  await made.plan();
  for (let check = 0; check < 2; check++) await allSay(made, "Failed");
  await made.addCluster("z", "rest");
  await playOn(made, 4);
  expect(made.rolloutState()).toMatchObject({ catchUps: { waiting: 6, failed: 2 } });
  expect((await made.sync("z"))?.observed?.phase).toBe("Ready");
});

test("a cluster that moved and was unreachable returns in its new stage, although it was a target of its old one", async () => {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 4 });
  await made.rollOut();
  for (const [commit, unhealthy] of [
    ["bbb", "r1"],
    ["ccc", "c2"],
  ] as const) {
    await revise(made, commit);
    for (const name of ["c1", "c2"]) if (name !== unhealthy) await made.finish(name);
    await begin(made);
    await made.finish(unhealthy, "Failed");
    await made.plan();
  }
  expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
  await made.addCluster("c1", "rest");
  await begin(made);
  expect((await made.sync("c1"))?.desired).toMatchObject({ attempt: 4, rollout: 1 });
  await made.finish("c1", "Unreachable");
  await made.plan();
  await made.observe("c1", "Reachable");
  await made.plan();
  expect((await made.sync("c1"))?.desired).toMatchObject({ attempt: 5, rollout: 1 });
});
