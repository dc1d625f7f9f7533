/** An edit gives the name of a stage to other clusters: no cluster gets a rollout that no cluster has verified. */
import { describe, expect, test } from "vitest";
import { allSay, begin, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const ring = (name: string) => ({ selector: { matchLabels: { ring: name } } });
const rest = ["r1", "r2", "r3"] as const;

/** The rollouts that clusters were assigned, by cluster. */
async function assigned(made: PlannerWorld): Promise<Readonly<Record<string, number | undefined>>> {
  const rows = await Promise.all(
    ["p1", ...rest].map(async (name) => [name, (await made.sync(name))?.desired.rollout] as const),
  );
  return Object.fromEntries(rows);
}

/** An empty first stage has passed rollout 2, and no cluster of the other stage has been assigned it yet. */
async function passedEmpty(): Promise<PlannerWorld> {
  const stages = [{ name: "canary", clusters: ring("canary"), optional: true }, { name: "broad" }];
  const made = await worldOf({ p1: "pilot", r1: "rest", r2: "rest", r3: "rest" }, { maxConcurrent: 4, stages });
  await made.rollOut();
  await made.setSource("bbb");
  await made.plan();
  expect(made.stages()).toEqual({ canary: "2", broad: "1 (2)" });
  return made;
}

describe("the last stage takes the name of an empty first stage", () => {
  const stages = [{ name: "pilot", clusters: ring("pilot") }, { name: "canary" }];

  test("the renamed stage gets no rollout that the stage before it has not passed", async () => {
    const made = await passedEmpty();
    await made.setGroup({ maxConcurrent: 4, stages: stages as never });
    await made.setSource("ccc");
    await begin(made);
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["p1"]);
    expect(await assigned(made)).toMatchObject({ r1: 1, r2: 1, r3: 1 });
  });

  test("the renamed stage gets the rollout when the stage before it has passed it", async () => {
    const made = await passedEmpty();
    await made.setGroup({ maxConcurrent: 4, stages: stages as never });
    await made.setSource("ccc");
    await made.rollOut();
    const newest = (await assigned(made)).p1;
    expect(newest).toBeGreaterThan(1);
    expect(await assigned(made)).toEqual({ p1: newest, r1: newest, r2: newest, r3: newest });
    expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:ccc");
  });
});

test("two stages exchange their clusters: none goes back from what its former stage has passed", async () => {
  const of = (first: string) => ({
    maxConcurrent: 4,
    stages: [
      { name: "canary", clusters: ring(first) },
      { name: "early", clusters: ring("early") },
      { name: "broad" },
    ] as never,
  });
  const made = await worldOf({ p1: "pilot", e1: "early", r1: "rest", r2: "rest", r3: "rest" }, of("pilot"));
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, "Ready");
  expect(made.stages()).toEqual({ canary: "2", early: "1 (2)", broad: "1" });
  await made.setGroup(of("rest"));
  await begin(made);
  expect(made.stages()).toEqual({ canary: "1 (2)", early: "1 (2)", broad: "1" });
  expect(await assigned(made)).toMatchObject({ p1: 2 });
  await made.rollOut();
  expect(await assigned(made)).toEqual({ p1: 2, r1: 2, r2: 2, r3: 2 });
});
