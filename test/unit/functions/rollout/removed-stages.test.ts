/** A stage that is removed during its stage run: a rollout that had not passed it goes no further. */
import { describe, expect, test } from "vitest";
import { allSay, ana, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** Rollout 2 failed in `canary`, which was removed after that. */
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

describe("a rollout that failed in a stage that was removed", () => {
  test("the next stage does not get the rollout, and the group says why", async () => {
    const made = await removed();
    expect(made.stages()).toEqual({ rest: "1" });
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
    const message = "nothing verified: 2 had not passed stage canary, which was removed, and does not go to rest";
    expect((await made.group()).status).toMatchObject({ state: "Stalled", conditions: [{ message }] });
  });

  test("the rollout gives way to a newer one", async () => {
    const made = await removed();
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.stages()).toEqual({ rest: "3" });
    expect(made.rolloutState().stages[0]).not.toHaveProperty("bar");
  });

  test("a refresh takes the revision through the present stages, as a rollout with a new number", async () => {
    const made = await removed();
    await made.operate({ refresh: ana(made.now) });
    await made.rollOut();
    expect(made.stages()).toEqual({ rest: "3" });
    expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:bbb");
  });

  test("neither a new stage in place of the removed one nor the next stage gets the rollout", async () => {
    const made = await removed();
    const none = { name: "other", clusters: { names: ["none"] } };
    await made.setGroup({ maxConcurrent: 2, stages: [none, { name: "rest" }] });
    await begin(made);
    await playOn(made, 3);
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
  });
});

test("a rollout that the removed stage had passed goes to the next stage", async () => {
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
