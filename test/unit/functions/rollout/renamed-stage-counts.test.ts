/** Catch-ups count in their own stage after stages are renamed. */
import { expect, test } from "vitest";
import { begin, names, playOn, rings, worldOf } from "#test/support/planner-story.ts";

const [canary] = rings.stages;
const pace = { maxConcurrent: 4, maxFailures: 1, maxUnreachable: 1 } as const;
const fleet = { c1: "canary", r1: "rest", r2: "rest" };

test("a failed catch-up still counts in its own stage when another stage is renamed", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace });
  await made.rollOut();
  await made.addCluster("r3", "rest");
  await begin(made);
  await made.finish("r3", "Failed");
  await made.plan();
  const counts = () => made.rolloutState().stages.map(({ name, failedCatchUps = 0 }) => [name, failedCatchUps]);
  expect(counts()).toEqual([
    ["canary", 0],
    ["rest", 1],
  ]);
  await made.setGroup({ ...pace, stages: [{ ...canary, name: "first" }, { name: "rest" }] });
  await playOn(made, 2);
  expect(counts()).toEqual([
    ["first", 0],
    ["rest", 1],
  ]);
});

test("the slots of many catch-ups name the stage by its new name", async () => {
  const many = { ...pace, maxConcurrent: "100%" } as const;
  const made = await worldOf(["a"], { ...many, stages: [{ name: "rest" }] });
  await made.rollOut();
  for (const name of names(220)) await made.addCluster(name, "rest");
  await begin(made);
  expect(made.rolloutState().stages).toMatchObject([{ catchingUp: 220 }]);
  await made.setGroup({ ...many, stages: [{ name: "all" }] });
  await made.plan();
  expect(new Set(made.slots().map(({ stage }) => stage))).toEqual(new Set(["all"]));
  expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 220 }, stages: [{ catchingUp: 220 }], jobs: [] });
  await playOn(made, 1);
  expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 0 }, stages: [{ changing: 0, catchingUp: 0 }] });
});
