import { expect, test } from "vitest";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { PlannerModel } from "#test/support/planner-model/planner-model.ts";

/** A call of the planner makes fewer calls to its ports than this. */
const calls = 40;

test("the model's watch of the planner accepts a cluster that is unregistered in the middle of a call", async () => {
  for (const outcome of ["Verifying", "Ready", "Failed"] as const) {
    for (let at = 1; at <= calls; at++) {
      const model = new PlannerModel();
      for (const name of ["c1", "c2"]) await model.setCluster(name, { ring: "r0", fleet: "web", uid: name });
      await model.revise("commit1", "content1");
      await model.setGroup({ maxConcurrent: "100%" }, [{ name: "app", source: "app" }]);
      model.queue = [];
      await model.plan({});
      await model.world.renderAll();
      await model.plan({});
      await model.workers.begin("c1", outcome);
      await model.workers.land(0);
      await model.plan({ midst: [{ at, act: () => model.unregister("c1") }] });
      await model.plan({});
      expect(model.world.stageRun("all").size).toBe(2);
    }
  }
});

test("the model's watch takes a new stage that has the former name of a renamed one for another stage", async () => {
  const model = new PlannerModel();
  const by = (ring: string) => ({ clusters: { selector: { matchLabels: { ring } } } });
  const setStages = (...stages: readonly object[]) =>
    model.setGroup({ maxConcurrent: 2, stages } as Partial<RolloutStrategy>, [{ name: "app", source: "app" }]);
  for (const [name, ring] of Object.entries({ a: "r1", b: "r2", c: "r2" }))
    await model.setCluster(name, { ring, fleet: "web", uid: name });
  await model.revise("commit1", "content1");
  await setStages({ name: "first", ...by("r1") }, { name: "last" });
  expect(await model.calm()).toBe(true);
  await model.revise("commit2", "content2");
  // The workers of the last stage's clusters do nothing: its stage run goes on.
  for (const name of ["b", "c"]) model.workers.busy.add(name);
  for (let count = 0; count < 50 && model.queue.some(({ from }) => from <= model.world.now.getTime()); count++)
    await model.deliver({ pick: 0, outcome: "Ready", lands: "now", rendering: "done", planner: {} });
  expect(model.world.stages()).toEqual({ first: "2", last: "1 (2)" });
  await setStages({ name: "firstx", ...by("r1") }, { name: "lastx" });
  await model.plan({});
  // The stages change places, with the names of before.
  await setStages({ name: "last", ...by("r2") }, { name: "first" });
  expect(await model.calm()).toBe(true);
  expect(model.world.stages()).toEqual({ last: "2", first: "2" });
});

test("the model's watch finds a cluster that answered the check of a bake and is judged as one that did not", async () => {
  const model = new PlannerModel();
  const { world } = model;
  const stages = [{ name: "all", after: [{ bake: "30m" }] }];
  const setUnreachable = (maxUnreachable: 1 | "10%") =>
    model.setGroup({ maxConcurrent: 2, progressDeadline: "10m", maxUnreachable, stages }, [
      { name: "app", source: "app" },
    ]);
  const deliver = async () => {
    for (let count = 0; count < 50 && model.queue.some(({ from }) => from <= world.now.getTime()); count++)
      await model.deliver({ pick: 0, outcome: "Ready", lands: "now", rendering: "done", planner: {} });
  };
  await model.setCluster("a", { ring: "r1", fleet: "web", uid: "a" });
  await model.revise("commit1", "content1");
  await setUnreachable("10%");
  await deliver();
  expect(world.stageRun("all").phase).toBe("Baking");
  model.workers.busy.add("a");
  for (const minutes of [30, 10]) {
    world.advanceClock(minutes * 60);
    await model.plan({});
  }
  expect(world.stageRun("all")).toMatchObject({ phase: "NothingVerified", away: ["a"] });
  await model.setCluster("b", { ring: "r1", fleet: "web", uid: "b" });
  await setUnreachable(1);
  await deliver();
  expect(world.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Unreachable: 1 } });
});
