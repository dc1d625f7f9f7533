/**
 * A stage's own maxConcurrent limits every change in the stage: the targets of its stage run, and clusters that catch
 * up.
 */
import { expect, test } from "vitest";
import { begin, counting, names, ownPaths, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const [canary, rest] = rings.stages;
/** Six clusters of the group may change at once, and one of `canary`. */
const pace = { maxConcurrent: 6, maxUnreachable: 1, stages: [{ ...canary, maxConcurrent: 1 }, { ...rest }] };

const holders = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

/** Canaries that join a cluster that has the stage's current rollout. */
async function joined(count: number): Promise<PlannerWorld> {
  const made = await worldOf({ c000: "canary", r: "rest" }, pace as never);
  await made.rollOut();
  for (const name of names(count + 1).slice(1)) await made.addCluster(name, "canary");
  await begin(made);
  return made;
}

test("clusters that join a stage catch up within its maxConcurrent, and clusters of other stages go past them", async () => {
  const made = await joined(3);
  expect(holders(made)).toEqual(["c001"]);
  await made.addCluster("z", "rest");
  await made.plan();
  expect(holders(made)).toEqual(["c001", "z"]);
  for (const next of ["c002", "c003"]) {
    for (const cluster of holders(made)) await made.finish(cluster);
    await made.plan();
    expect(holders(made)).toEqual([next]);
  }
  await playOn(made, 1);
  expect(made.rolloutState()).toMatchObject({ catchUps: { waiting: 0, changing: 0, failed: 0 } });
  expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { ready: 6 } });
});

test("a stage run waits while a catch-up uses the stage's only slot, and a catch-up waits for the stage run", async () => {
  const made = await joined(1);
  await revise(made, "bbb");
  expect(holders(made)).toEqual(["c001"]);
  expect((await made.sync("c001"))?.desired.revision).toBe("main@sha1:aaa");
  await made.finish("c001");
  await made.addCluster("c009", "canary");
  await made.plan();
  expect(holders(made)).toHaveLength(1);
  await playOn(made, 8);
  for (const name of ["c000", "c001", "c009", "r"])
    expect((await made.sync(name))?.desired.revision, name).toBe("main@sha1:bbb");
});

test("catch-ups that wait for the stage's slot are not read at each check, and count as waiting", async () => {
  const checks = async (count: number) => {
    const made = await joined(count);
    const counted = counting(made.table);
    await made.plan(counted.table);
    expect(made.rolloutState().catchUpsHeld).toMatchObject({
      holds: [{ cause: "bound", name: "canary", clusters: count - 1 }],
    });
    expect((await made.group()).status).toMatchObject({ state: "Rolling", clusters: { waiting: count - 1 } });
    return counted.read();
  };
  expect(await checks(40)).toBe(await checks(20));
});

test("a few waiting catch-ups are read when one is done, however many wait", async () => {
  const reads = async (count: number) => {
    const made = await joined(count);
    await made.finish("c001");
    const counted = counting(made.table);
    await made.plan(counted.table, ["c001"]);
    expect(holders(made)).toEqual(["c002"]);
    expect(made.rolloutState().catchUpsHeld).toMatchObject({
      holds: [{ cause: "bound", name: "canary", clusters: count - 2 }],
    });
    await made.addCluster("z", "rest");
    await made.plan();
    expect(holders(made)).toEqual(["c002", "z"]);
    return counted.read();
  };
  expect(await reads(40)).toBe(await reads(20));
});

test("a catch-up that turns out to be unnecessary no longer counts as waiting when another gets the slot", async () => {
  const made = await joined(0);
  await made.addCluster("x", "rest");
  await made.plan();
  await made.finish("x");
  await made.plan();
  await made.observe("x", "Verifying");
  for (const name of ["c001", "c002", "x", "y"]) await made.addCluster(name, "canary");
  await begin(made);
  expect(holders(made)).toEqual(["c001"]);
  expect(made.rolloutState().catchUpsHeld).toMatchObject({ holds: [{ cause: "bound", name: "canary", clusters: 3 }] });
  await made.finish("c001");
  await made.observe("x", "Ready");
  await made.plan(made.table, ["c001"]);
  await made.plan();
  expect(holders(made)).toEqual(["c002"]);
  expect(made.rolloutState()).toMatchObject({
    catchUps: { waiting: 1 },
    catchUpsHeld: { holds: [{ cause: "bound", name: "canary", clusters: 1 }] },
  });
});

test("a stage's maxConcurrent that is raised takes effect at once", async () => {
  const made = await joined(4);
  await made.setGroup({ ...pace, stages: [{ ...canary, maxConcurrent: 3 }, { ...rest }] } as never);
  await made.plan();
  expect(holders(made)).toEqual(["c001", "c002", "c003"]);
});

test("a slot of a catch-up counts once, and is free when the catch-up is done", async () => {
  const made = await worldOf({ c000: "canary", r: "rest" }, pace as never, ownPaths);
  await made.rollOut();
  await made.addCluster("c001", "canary");
  await begin(made);
  expect(made.rolloutState().stages[0]).toMatchObject({ changing: 0, catchingUp: 1 });
  await made.finish("c001");
  await made.plan();
  expect(made.rolloutState().stages[0]).toMatchObject({ changing: 0, catchingUp: 0 });
});

test("a stage that is removed and added again counts the slots of its own stage run, and of no other stage", async () => {
  const made = await worldOf({ c000: "canary", r: "rest", z: "rest" }, pace as never);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c000");
  await begin(made);
  await revise(made, "ccc");
  expect(holders(made)).toEqual(["c000", "r", "z"]);
  await made.addCluster("y", "rest");
  await made.plan();
  await made.setGroup({ ...pace, stages: [{ name: "rest" }] } as never);
  await made.plan();
  expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 2 }, stages: [{ changing: 2, catchingUp: 1 }] });
  await made.setGroup(pace as never);
  await made.plan();
  expect(made.rolloutState().stages).toMatchObject([
    { changing: 1, catchingUp: 0 },
    { changing: 2, catchingUp: 1 },
  ]);
  expect(made.rolloutState().catchUps).toMatchObject({ changing: 1 });
});

test("a stage that is removed and added again counts the slots of its catch-ups", async () => {
  const made = await joined(2);
  await made.setGroup({ ...pace, stages: [{ name: "rest" }] } as never);
  await made.plan();
  await made.setGroup(pace as never);
  await made.plan();
  expect(made.rolloutState()).toMatchObject({
    catchUps: { changing: 2 },
    stages: [{ catchingUp: 1 }, { catchingUp: 1 }],
  });
});

test("a cluster that keeps its slot when its stage is removed counts against its new stage's maxConcurrent", async () => {
  const own = { maxConcurrent: 6, stages: [{ ...canary }, { ...rest, maxConcurrent: 1 }] };
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, own as never);
  await made.rollOut();
  await revise(made, "bbb");
  expect(holders(made)).toEqual(["c1"]);
  await made.setGroup({ ...own, stages: [{ ...rest, maxConcurrent: 1 }] } as never);
  await revise(made, "ccc");
  expect(made.stages()).toEqual({ rest: "1 (3)" });
  expect(holders(made)).toEqual(["c1"]);
  for (const next of ["r1", "r2"]) {
    for (const cluster of holders(made)) await made.finish(cluster);
    await begin(made);
    expect(holders(made)).toEqual([next]);
  }
});

test("a cluster that keeps its slot counts before any cluster gets a new slot, whatever the order of names", async () => {
  const own = { maxConcurrent: 6, stages: [{ ...canary }, { ...rest, maxConcurrent: 1 }] };
  const made = await worldOf({ z1: "canary", r1: "rest", r2: "rest" }, own as never);
  await made.rollOut();
  await revise(made, "bbb");
  expect(holders(made)).toEqual(["z1"]);
  await made.setGroup({ ...own, stages: [{ ...rest, maxConcurrent: 1 }] } as never);
  await revise(made, "ccc");
  expect(made.stages()).toEqual({ rest: "1 (3)" });
  expect(holders(made)).toEqual(["z1"]);
  for (const next of ["r1", "r2"]) {
    for (const cluster of holders(made)) await made.finish(cluster);
    await begin(made);
    expect(holders(made)).toEqual([next]);
  }
});

test("a cluster at work in a slot of a removed stage waits until its new stage has a free slot", async () => {
  const own = { maxConcurrent: 6, stages: [{ ...canary }, { ...rest, maxConcurrent: 1 }] };
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, own as never);
  await made.rollOut();
  await revise(made, "bbb");
  await made.observe("c1", "Applying");
  await made.setGroup({ ...own, stages: [{ ...rest, maxConcurrent: 1 }] } as never);
  await revise(made, "ccc");
  expect(holders(made)).toEqual(["c1", "r1"]);
  await made.observe("c1", "Verifying");
  await made.plan();
  expect((await made.sync("c1"))?.desired.revision).toBe("main@sha1:bbb");
  expect(made.rolloutState().stages).toMatchObject([{ changing: 1, catchingUp: 0 }]);
  for (const last of ["r1", "r2"]) {
    await made.finish(last);
    await made.plan(made.table, [last]);
    expect(made.rolloutState().stages).toMatchObject([{ changing: 1, catchingUp: 0 }]);
  }
  expect((await made.sync("c1"))?.desired.revision).toBe("main@sha1:ccc");
  await playOn(made);
  expect(made.stages()).toEqual({ rest: "3" });
});
