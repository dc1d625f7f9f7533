/**
 * A cluster that moves to a stage that is behind keeps what a stage has passed, although that stage has something newer
 * by now.
 */
import { expect, test } from "vitest";
import { begin, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const by = (ring: string) => ({ clusters: { selector: { matchLabels: { ring } } } });
const stages = [{ name: "canary", ...by("canary") }, { name: "early", ...by("early") }, { name: "rest" }];
const pace = { maxConcurrent: 3, maxUnreachable: "100%" };

/** Rollout 2 has passed `canary`, which has 3 by now; `early` is updating to 2, and its cluster `e` has it. */
async function threeRollouts(): Promise<PlannerWorld> {
  const made = await worldOf({ a: "canary", e: "early", f: "early", r: "rest" }, { ...pace, stages }, web);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("a");
  await begin(made);
  await made.finish("e");
  await begin(made);
  await revise(made, "ccc");
  await made.finish("a");
  await begin(made);
  expect(made.stages()).toEqual({ canary: "3", early: "1 (2)", rest: "1" });
  expect((await made.sync("e"))?.desired.rollout).toBe(2);
  return made;
}

test("a cluster that moves to a later stage keeps what the first stage has passed before its current rollout", async () => {
  const made = await threeRollouts();
  await made.addCluster("e", "rest");
  await begin(made);
  await made.plan();
  expect((await made.sync("e"))?.desired).toMatchObject({ rollout: 2, attempt: 2 });
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
});

test("it keeps it after an edit of the stages", async () => {
  const made = await threeRollouts();
  await made.setGroup({ ...pace, stages: [{ name: "first", ...by("rest") }, { name: "last" }] }, web);
  await begin(made);
  await made.plan();
  expect(made.stages()).toMatchObject({ last: "1" });
  expect((await made.sync("e"))?.desired).toMatchObject({ rollout: 2, attempt: 2 });
});

test("it has another attempt with the same rollout when it was unreachable and answers again", async () => {
  const made = await threeRollouts();
  await made.addCluster("e", "rest");
  await begin(made);
  await made.observe("e", "Reachable");
  await begin(made);
  expect((await made.sync("e"))?.desired).toMatchObject({ rollout: 2 });
  await made.finish("e");
  await made.plan();
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
});

test("a cluster that has what no stage has passed goes back", async () => {
  const made = await threeRollouts();
  await revise(made, "ddd");
  expect((await made.sync("a"))?.desired.rollout).toBe(4);
  await made.finish("a", "Failed");
  await made.plan();
  await made.addCluster("a", "rest");
  for (const phase of ["Ready", "Ready"] as const) {
    await begin(made);
    for (const { cluster } of made.slots().filter(({ cluster }) => cluster !== "f")) await made.finish(cluster, phase);
  }
  expect((await made.sync("a"))?.desired.rollout).toBe(1);
});
