import { expect, test } from "vitest";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";

test("a stage run that passes clears the failed catch-ups of its own stage, and of no other stage", async () => {
  const made = await worldOf({ c: "canary", r: "rest" }, { ...rings, maxConcurrent: 9, maxFailures: 9 });
  await made.rollOut();
  for (const name of ["c1", "c2", "c3"]) await made.addCluster(name, "canary");
  for (const name of ["r1", "r2"]) await made.addCluster(name, "rest");
  await begin(made);
  for (const { cluster } of made.slots()) await made.finish(cluster, "Failed");
  await made.plan();
  expect(made.rolloutState()).toMatchObject({
    ...{ catchUps: { waiting: 0, changing: 0, failed: 5 } },
    stages: [{ failedCatchUps: 3 }, { failedCatchUps: 2 }],
  });
  await revise(made, "bbb");
  for (const { cluster } of made.slots()) await made.finish(cluster);
  await made.plan();
  expect(made.rolloutState()).toMatchObject({
    ...{ catchUps: { failed: 2 }, jobs: [] },
    stages: [
      { current: 2, failedCatchUps: 0 },
      { current: 1, failedCatchUps: 2 },
    ],
  });
  expect(made.rows("CatchUp")).toMatchObject([{ cluster: "r1" }, { cluster: "r2" }]);
  for (const { cluster } of made.slots()) await made.finish(cluster);
  await made.plan();
  expect(made.rows("CatchUp")).toEqual([]);
});

test("every cluster that joined a stage during a stage run gets that rollout after it has passed", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 9 });
  await made.rollOut();
  await revise(made, "bbb");
  for (const name of ["c", "d"]) {
    await made.addCluster(name, "all");
    await made.plan();
    await made.finish(name);
    await made.plan();
    expect((await made.sync(name))?.desired.rollout).toBe(1);
  }
  for (const name of ["a", "b"]) await made.finish(name);
  await playOn(made);
  expect(made.stages()).toEqual({ all: "2" });
  for (const name of ["c", "d"]) expect((await made.sync(name))?.desired.rollout).toBe(2);
});
