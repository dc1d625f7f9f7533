import { describe, expect, test } from "vitest";
import { due } from "#shared/fleet/rows/due.ts";
import { inEveryGap } from "#test/support/every-gap.ts";
import { allSay, ana, begin, lease, names, ownPaths, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const group = { maxConcurrent: 10, maxFailures: 10 } as const;

async function settled(...clusters: readonly string[]): Promise<PlannerWorld> {
  const made = await worldOf(clusters, group);
  if (clusters.length > 0) await made.rollOut();
  await made.plan();
  return made;
}

async function status(made: PlannerWorld) {
  const { state, reconciled, clusters } = (await made.group()).status;
  return { state, reconciled, clusters };
}

async function asked(made: PlannerWorld, number: number) {
  await made.operate({ reconcile: { ...ana(made.now), number } });
  await made.plan();
}

describe("a reconcile of a group", () => {
  test("a reconcile makes no Sync due that waits for the planner", async () => {
    const made = await worldOf(["a", "b", "c"], { ...group, maxConcurrent: 1 });
    await made.rollOut();
    for (const cluster of ["a", "b"]) await made.observe(cluster, "Reachable");
    await made.plan();
    expect(made.rolloutState().catchUps).toMatchObject({ changing: 1, waiting: 1 });
    for (const cluster of ["b", "c"]) {
      const row = await made.sync(cluster);
      if (row === undefined) throw new Error("it was assigned");
      await made.table.write([{ put: { ...due(row, undefined), version: row.version + 1 } }]);
    }
    await asked(made, 1);
    expect(await made.sync("c")).toMatchObject({ reconcile: 1, dueKey: expect.any(String) });
    // It waits for the planner, which gives it its turn.
    expect(await made.sync("b")).not.toHaveProperty("dueKey");
  });

  test("a reconcile makes the planner read reports whose messages were lost", async () => {
    const made = await worldOf(["a", "b"], group);
    await begin(made);
    await made.finish("a");
    await made.plan(made.table, []);
    expect(made.states()).toMatchObject({ a: "Assigned" });
    await made.operate({ reconcile: { ...ana(made.now), number: 1 } });
    // The API's message says that the group changed, and names no cluster.
    await made.plan(made.table, []);
    expect(made.states()).toMatchObject({ a: "Succeeded", b: "Assigned" });
  });

  test.each([["a", "b"], []])(
    "a reconcile is answered together with the state that it found, and not a moment before (%s, %s)",
    async (...clusters) => {
      const gaps = await inEveryGap(async (gap) => {
        const made = await worldOf(clusters, group);
        if (clusters.length > 0) await made.rollOut();
        await made.plan();
        await made.operate({ reconcile: { ...ana(made.now), number: 1 } });
        if (clusters.length > 0) await made.plan();
        for (const cluster of clusters) await made.observe(cluster, "Ready");
        let between: Awaited<ReturnType<typeof status>> | undefined;
        const read = async () => {
          between = await status(made);
        };
        await made.plan(gap(made.table, read));
        const answered = { state: clusters.length === 0 ? "NoClusters" : "Complete", reconciled: 1 };
        if (between?.reconciled === 1) expect(between).toMatchObject(answered);
        expect(await status(made)).toMatchObject(answered);
      });
      expect(gaps).toBeGreaterThan(1);
    },
  );

  test("a reconcile is answered with the state after the repair, and not with the failure before it", async () => {
    const made = await worldOf(["a", "b"], group);
    await begin(made);
    await made.finish("a", "Failed");
    await made.finish("b");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Degraded", clusters: { failed: 1 } });
    made.advanceClock(5);
    await asked(made, 1);
    await made.observe("a", "Ready");
    await made.observe("b", "Ready");
    made.advanceClock(5);
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1, clusters: { ready: 2, failed: 0 } });
  });

  test("a reconcile is answered when a worker has checked every cluster since, and not before", async () => {
    const made = await settled("a", "b");
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: undefined });
    await asked(made, 4);
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
    await made.observe("b", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
    await made.observe("a", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 4 });
    expect(made.rolloutState()).not.toHaveProperty("checking");
  });

  test("a reconcile is not answered by a check that began before it, whatever the clocks say", async () => {
    const made = await settled("a");
    await asked(made, 1);
    await made.observe("a", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1 });
    made.advanceClock(-3600);
    await asked(made, 2);
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: 1 });
    const row = await made.sync("a");
    if (row?.observed === undefined) throw new Error("it was observed");
    // A worker that began before it was asked writes later: it has handled the reconcile before this one.
    const late = { ...row, version: row.version + 1, observed: { ...row.observed, handledReconcile: 1, at: "2027" } };
    await made.table.write([{ put: late }]);
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: 1 });
  });

  test("a reconcile waits while a cluster is being repaired, and reports the failures that are left", async () => {
    const made = await settled("a", "b", "c");
    await asked(made, 1);
    await made.observe("a", "Ready");
    await made.observe("b", "Failed");
    await made.observe("c", "Verifying");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Degraded", reconciled: undefined });
    await made.observe("c", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({
      state: "Degraded",
      reconciled: 1,
      clusters: { selected: 3, ready: 2, changing: 0, failed: 1, unreachable: 0, waiting: 0 },
    });
  });

  test("a reconcile waits for a cluster that gets another turn, also while a freeze delays that turn", async () => {
    const made = await worldOf(["a", "b"], { ...group, maxFailures: 0 });
    await begin(made);
    await made.finish("a", "Failed");
    await made.finish("b");
    await made.plan();
    const env = { selector: { matchLabels: { env: "prod" } }, text: "env=prod" };
    await made.addCluster("a", "all", { labels: { env: "prod" } });
    const freeze = { name: "inc-1", by: "ana", at: made.now.toISOString(), reason: "INC-1", clusters: env };
    await made.setFreezes({ freezes: [freeze] });
    await asked(made, 1);
    await made.observe("b", "Ready");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", counts: { Waiting: 1, Failed: 0 } });
    expect(made.rolloutState().checking).toMatchObject({ checked: 0 });
    await made.setFreezes({});
    await made.plan();
    await made.finish("a");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1, clusters: { ready: 2 } });
  });

  test("a reconcile counts a cluster that could be assigned nothing as failed, also in the check that ends the reconcile", async () => {
    const made = await worldOf(["a", "b"], group, ownPaths);
    await made.plan();
    await made.renderAll("no kind", (row) => row.path === "clusters/a");
    await made.rollOut();
    await made.plan();
    await asked(made, 1);
    await made.observe("b", "Ready");
    for (let check = 0; check < 3; check++) {
      await made.plan();
      expect(await status(made)).toMatchObject({ reconciled: 1, clusters: { ready: 1, failed: 1, waiting: 0 } });
    }
  });

  test("a reconcile reports what workers observed, although the index still has an older state", async () => {
    const made = await settled("a");
    await asked(made, 1);
    const before = await made.sync("a");
    await made.observe("a", "Failed");
    const row = await made.sync("a");
    if (row === undefined || before?.stateSk === undefined) throw new Error("it is there");
    await made.table.write([{ put: { ...row, version: row.version + 1, stateSk: before.stateSk } }]);
    for (let check = 0; check < 3; check++) {
      await made.plan();
      expect(await status(made)).toMatchObject({ state: "Degraded", reconciled: 1, clusters: { ready: 0, failed: 1 } });
    }
  });

  test("a reconcile ends after its deadline, and counts a cluster that was not checked as changing", async () => {
    const made = await settled("a", "b");
    await asked(made, 1);
    await made.observe("a", "Ready");
    made.advanceClock(601);
    await made.plan();
    expect(await status(made)).toMatchObject({ reconciled: 1, clusters: { ready: 1, changing: 1 } });
  });

  test("a reconcile gives every cluster the whole deadline, however many clusters there are", async () => {
    const made = await settled("a", "b", "c");
    await asked(made, 1);
    for (const name of ["a", "b"]) {
      made.advanceClock(400);
      await made.observe(name, "Ready");
      await made.plan();
      expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
    }
    made.advanceClock(400);
    await made.observe("c", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1 });
  });

  test("a reconcile's deadline does not run while the group is suspended", async () => {
    const made = await settled("a");
    await asked(made, 1);
    const { reconcile } = (await made.group()).operations;
    if (reconcile === undefined) throw new Error("it was asked");
    await made.operate({ reconcile, suspended: { ...ana(made.now), number: 2 } });
    await made.plan();
    made.advanceClock(900);
    await made.plan();
    await made.operate({ reconcile, resumed: { ...ana(made.now), number: 3 } });
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
  });

  test("a reconcile of a group with a rollout in progress is answered when all its clusters have been checked", async () => {
    const made = await settled("a", "b");
    await made.setSource("ccc");
    await asked(made, 1);
    expect(await status(made)).toMatchObject({ state: "Rolling", reconciled: undefined });
    await made.rollOut();
    for (const name of ["a", "b"]) await made.observe(name, "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1 });
  });

  test("a reconcile of a group without clusters is answered at once, with the state NoClusters", async () => {
    const made = await settled();
    await asked(made, 1);
    expect(await status(made)).toMatchObject({ state: "NoClusters", reconciled: 1 });
  });

  test("a reconcile wakes the worker of every cluster once, also in a large group", async () => {
    const made = await worldOf(names(120), { maxConcurrent: "100%" });
    await made.rollOut();
    made.sender.take();
    await asked(made, 1);
    const woken = made.sender.take().filter(({ to }) => to === "apply");
    expect(new Set(woken.map((message) => "cluster" in message && message.cluster)).size).toBe(120);
    await made.plan();
    expect(made.sender.take().filter(({ to }) => to === "apply")).toEqual([]);
  });

  test("a reconcile by a person whose clock is behind retries a failed cluster all the same", async () => {
    const made = await worldOf(["a"], {});
    await begin(made);
    await allSay(made, "Failed");
    await made.operate({ reconcile: ana(new Date(made.now.getTime() - 5000)) });
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
  });
});

describe("a reconcile of a stage run that does not progress", () => {
  test("a reconcile gives a failed cluster one more turn with fresh counts, and is answered after that turn", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
    await begin(made);
    await allSay(made, "Failed");
    expect(await status(made)).toMatchObject({ state: "Halted" });
    await asked(made, 1);
    expect(made.states()).toEqual({ a: "Assigned" });
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", counts: { Failed: 0, Assigned: 1 }, failures: [] });
    expect(await made.sync("a")).not.toHaveProperty("paused");
    await allSay(made, "Failed");
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    expect(await status(made)).toMatchObject({ state: "Halted", reconciled: 1 });
    await asked(made, 2);
    await made.rollOut();
    for (const name of ["a", "b", "c"]) await made.observe(name, "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 2 });
    expect(made.stageRuns()).toHaveLength(1);
  });

  test("a reconcile respects maxConcurrent, and still requires a verified cluster", async () => {
    const made = await worldOf(names(6), { maxConcurrent: 2, maxFailures: 6 });
    await begin(made);
    for (let round = 0; round < 4; round++) await allSay(made, "Failed");
    expect(made.stageRun("all").phase).toBe("NothingVerified");
    await asked(made, 1);
    expect(made.slots()).toHaveLength(2);
    for (let round = 0; round < 4; round++) await allSay(made, "Failed");
    expect(made.stageRun("all").phase).toBe("NothingVerified");
  });

  test("a reconcile waits for a slot that is kept for a worker, and then retries the cluster", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" });
    await begin(made);
    await made.observe("a", "Applying");
    await lease(made, "a", { fence: 1, seconds: 120 });
    made.advanceClock(61);
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    await asked(made, 1);
    expect(made.slots()).toMatchObject([{ cluster: "a", releasing: { fence: 1 } }]);
    expect((await made.sync("a"))?.desired.attempt).toBe(1);
    made.advanceClock(60);
    await made.plan();
    expect(made.slots()).toHaveLength(1);
    await made.rollOut();
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 2, Failed: 0 });
  });

  test("a reconcile also retries a failed cluster that the stage's budget tolerated", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 4, maxFailures: 1 });
    await begin(made);
    await made.finish("a", "Failed");
    await made.finish("b");
    await made.plan();
    expect(made.stages()).toEqual({ all: "1" });
    expect((await made.sync("a"))?.paused).toBeDefined();
    await asked(made, 1);
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    await allSay(made, "Ready");
    made.advanceClock(60);
    for (const name of ["a", "b"]) await made.observe(name, "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1 });
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("a reconcile also retries failed catch-ups", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 4 });
    await made.rollOut();
    await made.addCluster("b", "all");
    await made.addCluster("c", "all");
    await made.plan();
    await allSay(made, "Failed");
    expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 2 }, stages: [{ failedCatchUps: 2 }] });
    await asked(made, 1);
    expect(made.rolloutState()).toMatchObject({
      catchUps: { failed: 0, changing: 2 },
      stages: [{ failedCatchUps: 0 }],
    });
    await allSay(made, "Ready");
    for (const name of ["a", "b", "c"]) await made.observe(name, "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ reconciled: 1 });
  });

  test("a reconcile reaches all clusters of a group that fills many pages", async () => {
    const made = await worldOf(names(90), { maxConcurrent: "100%", maxFailures: "100%" });
    await begin(made);
    await allSay(made, "Failed");
    expect(made.stageRun("all").counts.Failed).toBe(90);
    await asked(made, 1);
    expect(made.stageRun("all").counts).toMatchObject({ Failed: 0, Assigned: 90 });
  });
});

describe("a group that is not Complete", () => {
  test("a group whose revision cannot be rendered is Stalled, although its budget tolerates the failures", async () => {
    const made = await settled("a", "b");
    await made.setGroup(group, [{ name: "app", source: "app", path: "{{ cluster.values.dir }}" }]);
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "NothingVerified", counts: { Failed: 2 } });
    expect(await status(made)).toMatchObject({ state: "Stalled", clusters: { selected: 2, ready: 0, failed: 2 } });
  });

  test("a group that names an unregistered cluster is Degraded until the cluster is registered", async () => {
    const made = await settled("a");
    await made.setGroup({}, undefined, { names: ["a", "b"] });
    await made.rollOut();
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Degraded", clusters: { selected: 1, ready: 1 } });
    await made.addCluster("b", "all");
    await made.rollOut();
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
  });

  test("a group with a stage run in progress is Rolling, however many clusters are ready", async () => {
    const made = await settled("a", "b");
    await revise(made, "bbb");
    await made.finish("a");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Rolling", clusters: { selected: 2, ready: 1, changing: 1 } });
  });
});
