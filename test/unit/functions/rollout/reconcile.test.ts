import { describe, expect, test } from "vitest";
import { PlannerWorld } from "#test/support/planner-world.ts";

const ana = (made: PlannerWorld) => ({ by: "ana", at: made.now.toISOString() });

async function settled(...clusters: readonly string[]): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  for (const name of clusters) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({ maxConcurrent: 10, maxFailures: 10 });
  await made.rollOut();
  await made.plan();
  return made;
}

async function status(made: PlannerWorld) {
  const { state, reconciled, clusters } = (await made.group()).status;
  return { state, reconciled, clusters };
}

async function asked(made: PlannerWorld, number: number) {
  await made.operate({ reconcile: { ...ana(made), number } });
  await made.plan();
}

describe("a reconcile", () => {
  test("is answered when a worker has looked at every cluster since, and not before", async () => {
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
    expect(await made.head()).not.toHaveProperty("looking");
  });

  test("is not answered by a look of before it, whatever the clocks say", async () => {
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

  test("waits while what was found is being mended, and says what is left", async () => {
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

  test("counts who could be assigned nothing as failed, in the look that ends it, too", async () => {
    const made = new PlannerWorld();
    for (const name of ["a", "b"]) await made.addCluster(name, "all");
    await made.setSource("aaa");
    const template = { name: "app", source: "app", path: "clusters/{{ cluster.name }}" };
    await made.setGroup({ maxConcurrent: 10, maxFailures: 10 }, [template]);
    await made.plan();
    await made.renderAll("no kind", (row) => row.path === "clusters/a");
    await made.rollOut();
    await made.plan();
    await asked(made, 1);
    await made.observe("b", "Ready");
    for (let look = 0; look < 3; look++) {
      await made.plan();
      expect(await status(made)).toMatchObject({ reconciled: 1, clusters: { ready: 1, failed: 1, waiting: 0 } });
    }
  });

  test("says what was seen, although the index still has what was before", async () => {
    const made = await settled("a");
    await asked(made, 1);
    const before = await made.sync("a");
    await made.observe("a", "Failed");
    const row = await made.sync("a");
    if (row === undefined || before?.stateSk === undefined) throw new Error("it is there");
    await made.table.write([{ put: { ...row, version: row.version + 1, stateSk: before.stateSk } }]);
    for (let look = 0; look < 3; look++) {
      await made.plan();
      expect(await status(made)).toMatchObject({ state: "Degraded", reconciled: 1, clusters: { ready: 0, failed: 1 } });
    }
  });

  test("ends after the deadline, with who was not looked at", async () => {
    const made = await settled("a", "b");
    await asked(made, 1);
    await made.observe("a", "Ready");
    made.advanceClock(601);
    await made.plan();
    expect(await status(made)).toMatchObject({
      state: "Reconciling",
      reconciled: 1,
      clusters: { ready: 1, changing: 1 },
    });
  });

  test("gives every cluster the whole deadline, however many there are", async () => {
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

  test("spends no deadline while the group is suspended", async () => {
    const made = await settled("a");
    await asked(made, 1);
    const { reconcile } = (await made.group()).operations;
    if (reconcile === undefined) throw new Error("it was asked");
    await made.operate({ reconcile, suspended: { ...ana(made), number: 2 } });
    await made.plan();
    made.advanceClock(900);
    await made.plan();
    await made.operate({ reconcile, resumed: { ...ana(made), number: 3 } });
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
  });

  test("of a group that has to roll something out is answered after it, by all its clusters", async () => {
    const made = await settled("a", "b");
    await made.setSource("bbb", "aaa");
    await made.setSource("ccc");
    await asked(made, 1);
    await made.rollOut();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Complete" });
    expect(await status(made)).toMatchObject({ state: "Reconciling", reconciled: undefined });
    for (const name of ["a", "b"]) await made.observe(name, "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 1 });
  });

  test("that restarts a halted rollout does so once, and is answered when that is complete", async () => {
    const made = new PlannerWorld();
    await made.addCluster("a", "all");
    await made.setSource("aaa");
    await made.setGroup({});
    for (let step = 0; step < 2; step++) {
      await made.plan();
      await made.renderAll();
    }
    await made.plan();
    await made.observe("a", "Failed");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Halted" });
    await asked(made, 1);
    expect(made.newest()).toMatchObject({ number: 2, trigger: "reconcile" });
    await made.observe("a", "Failed");
    for (let look = 0; look < 3; look++) await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Halted" });
    expect(await status(made)).toMatchObject({ state: "Halted", reconciled: undefined });
    await asked(made, 2);
    await made.rollOut();
    await made.plan();
    await made.observe("a", "Ready");
    await made.plan();
    expect(await status(made)).toMatchObject({ state: "Complete", reconciled: 2 });
  });

  test("of a group without clusters is answered at once, and all is not well", async () => {
    const made = await settled();
    await asked(made, 1);
    expect(await status(made)).toMatchObject({ state: "NoClusters", reconciled: 1 });
  });
});

describe("all is not well with a group", () => {
  test("one of whose clusters the revision could not be rendered for, within its budget", async () => {
    const made = await settled("a", "b");
    await made.setGroup({ maxConcurrent: 10, maxFailures: 10 }, [
      { name: "app", source: "app", path: "{{ cluster.values.dir }}" },
    ]);
    for (let look = 0; look < 3; look++) await made.plan();
    expect(made.newest()).toMatchObject({ phase: "Complete", message: "2 failed" });
    expect(await status(made)).toMatchObject({ state: "Degraded", clusters: { selected: 2, ready: 0, failed: 2 } });
  });

  test("that names a cluster nobody registered, until somebody does", async () => {
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
});
