/** Stages that are removed while a stage run is in progress in the stage that takes over their clusters. */
import { expect, test } from "vitest";
import { ana, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 4 };
const one = { ...pace, stages: [{ name: "rest" }] };
const revisions = async (made: PlannerWorld) =>
  Object.fromEntries(
    await Promise.all(
      ["c1", "r1", "r2"].map(async (name) => [name, (await made.sync(name))?.desired.revision.slice(-3)]),
    ),
  );

/** The current rollout of `canary` is `ccc`; `rest` has `aaa` and is updating to `bbb`. Then all clusters are in `rest`. */
async function merged(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, ...pace });
  await made.rollOut();
  for (const commit of ["bbb", "ccc"]) {
    await revise(made, commit);
    await made.finish("c1");
    await begin(made);
  }
  expect(made.stages()).toEqual({ canary: "3", rest: "1 (2)" });
  await made.setGroup(one);
  await begin(made);
  expect(made.stages()).toEqual({ rest: "1 (2)" });
  return made;
}

test("a cluster keeps the newer rollout that its removed stage had passed", async () => {
  const made = await merged();
  expect(await revisions(made)).toEqual({ c1: "ccc", r1: "bbb", r2: "bbb" });
  await playOn(made);
  expect(made.stages()).toEqual({ rest: "3" });
  expect(await revisions(made)).toEqual({ c1: "ccc", r1: "ccc", r2: "ccc" });
  expect((await made.sync("c1"))?.desired.attempt).toBe(3);
});

test("a cluster keeps the newer rollout of its removed stage when a refresh takes a new snapshot that includes it", async () => {
  const made = await merged();
  await made.operate({ refresh: ana(made.now) });
  await begin(made);
  expect(made.stageRun("rest")).toMatchObject({ rollout: 2, size: 3 });
  await playOn(made);
  expect(made.stages()).toEqual({ rest: "3" });
  expect((await made.sync("c1"))?.desired).toMatchObject({ attempt: 3, rollout: 3 });
});

test("a cluster keeps the newer rollout of its removed stage while another stage is ahead of it and a third is behind", async () => {
  const selector = (ring: string) => ({ clusters: { selector: { matchLabels: { ring } } } });
  const [canary, early, rest] = [
    { name: "canary", ...selector("canary") },
    { name: "early", ...selector("early") },
    { name: "rest" },
  ];
  const made = await worldOf({ c1: "canary", e1: "early", r1: "rest" }, { ...pace, stages: [canary, early, rest] });
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await begin(made);
  await made.finish("e1", "Failed");
  await made.plan();
  expect(made.stages()).toEqual({ canary: "2", early: "1 (2)", rest: "1" });
  await made.setGroup({ ...pace, stages: [early, rest] });
  await revise(made, "ccc");
  await made.finish("e1");
  await begin(made);
  await made.finish("r1", "Failed");
  await made.plan();
  // `c1` waits in `rest`, whose current rollout is the first.
  expect(made.stages()).toEqual({ early: "3", rest: "1 (3)" });
  expect(made.rolloutState().former).toBe(2);
  expect((await made.sync("c1"))?.desired.rollout).toBeGreaterThan(1);
});

test("a cluster keeps the newer rollout of its removed stage through many rollouts, and the rollout state then forgets that stage", async () => {
  const made = await merged();
  await made.finish("r1", "Failed");
  await made.finish("r2", "Failed");
  await made.plan();
  for (const commit of "defghijklmnop") {
    await revise(made, commit.repeat(3));
    for (const { cluster } of made.slots()) await made.finish(cluster, "Failed");
    await made.plan();
  }
  expect(made.rolloutState()).toMatchObject({ former: 3, stages: [{ current: 1 }] });
  expect(made.rolloutState().ledger.map(({ number }) => number)).toContain(3);
  await revise(made, "zzz");
  await playOn(made);
  expect(made.stages()).toEqual({ rest: "17" });
  expect(made.rolloutState()).not.toHaveProperty("former");
});
