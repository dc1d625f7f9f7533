/** A stage that is removed while a content goes through it: what it had not passed goes nowhere else. */
import { describe, expect, test } from "vitest";
import { allSay, ana, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** Content 2 has failed in canary, which is no more since. */
async function removed(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, "Failed");
  expect(made.stageRun("canary").phase).toBe("Halted");
  await made.setGroup({ maxConcurrent: 2, stages: [{ name: "rest" }] });
  await playOn(made, 3);
  return made;
}

describe("a content that failed in a stage that was removed", () => {
  test("is not given to the stage after it, and the group says why", async () => {
    const made = await removed();
    expect(made.stages()).toEqual({ rest: "1" });
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
    const message = "nothing verified: 2 had not passed stage canary, which was removed, and does not go to rest";
    expect((await made.group()).status).toMatchObject({ state: "Stalled", conditions: [{ message }] });
  });

  test("gives way to a newer one", async () => {
    const made = await removed();
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.stages()).toEqual({ rest: "3" });
    expect(made.rolloutState().stages[0]).not.toHaveProperty("bar");
  });

  test("goes through the stages of now, with a number of its own, by a refresh", async () => {
    const made = await removed();
    await made.operate({ refresh: ana(made.now) });
    await made.rollOut();
    expect(made.stages()).toEqual({ rest: "3" });
    expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:bbb");
  });

  test("is not given to a new stage in its place, nor to the one after it", async () => {
    const made = await removed();
    const none = { name: "other", clusters: { names: ["none"] } };
    await made.setGroup({ maxConcurrent: 2, stages: [none, { name: "rest" }] });
    await begin(made);
    await playOn(made, 3);
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
  });
});

test("what the removed stage had passed goes to the stage after it", async () => {
  const early = { name: "early", clusters: { selector: { matchLabels: { ring: "early" } } } };
  const [canary, rest] = [rings.stages[0], { name: "rest" }];
  const three = { stages: [canary, early, rest] as never, maxConcurrent: 4 };
  const made = await worldOf({ c1: "canary", e1: "early", r1: "rest" }, three);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await begin(made);
  await made.finish("e1");
  await begin(made);
  expect(made.stages()).toEqual({ canary: "2", early: "2", rest: "1 (2)" });
  await revise(made, "ccc");
  await made.finish("c1");
  await begin(made);
  expect(made.stages()).toMatchObject({ canary: "3", early: "2 (3)" });
  await made.setGroup({ maxConcurrent: 4, stages: [canary, rest] as never });
  await playOn(made, 4);
  expect(made.stages()).toEqual({ canary: "3", rest: "2" });
});
