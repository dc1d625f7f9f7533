/** Clusters that are deleted and registered again under their names before the planner is called. */
import { expect, test } from "vitest";
import { forgetSyncs } from "#shared/adapters/forget-syncs.ts";
import { ana, begin, playOn, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** Deletes a Cluster whose objects stay, as the API does. */
async function registerAnew(made: PlannerWorld, cluster: string): Promise<void> {
  await made.removeCluster(cluster);
  await forgetSyncs({ table: made.table, clock: { now: () => made.now } }, cluster, "delete it once more");
  await made.addCluster(cluster, "all", { uid: `another ${cluster}` });
}

test("a deletion goes on without an unreachable cluster that was registered anew", async () => {
  const made = await worldOf(["a", "z"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  await made.plan();
  await made.finish("a");
  await made.finish("z", "Unreachable");
  await made.plan();
  expect(made.stageRun("all").phase).toBe("TooManyUnreachable");
  await registerAnew(made, "z");
  await playOn(made, 3);
  expect(made.rows("SyncGroup")).toEqual([]);
  expect((await made.sync("z"))?.desired.action).toBe("orphan");
});

test("a cluster that is registered anew takes part in the first rollout again, and the verified clusters stay verified", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
  await begin(made);
  await made.finish("a");
  await made.plan();
  await made.finish("b");
  await made.plan();
  await registerAnew(made, "b");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ phase: "Updating", size: 3 });
  await made.finish("c");
  await begin(made);
  expect(made.stages()).toEqual({ all: "- (1)" });
  expect((await made.sync("b"))?.desired.action).toBe("apply");
  await playOn(made);
  expect(made.stages()).toEqual({ all: "1" });
  expect((await made.sync("a"))?.desired.attempt).toBe(1);
});

test("a cluster that its group names is assigned anew, although its row still has the earlier cluster's report", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, undefined, { names: ["a", "b"] });
  await made.rollOut();
  await registerAnew(made, "a");
  await playOn(made);
  expect(await made.sync("a")).toMatchObject({ desired: { action: "apply" }, observed: { phase: "Ready" } });
});

test("a cluster that is registered anew is not ready while it waits behind a halted stage run", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await begin(made);
  await made.finish("a", "Failed");
  await made.finish("b");
  await made.plan();
  expect(made.stageRun("all").phase).toBe("Halted");
  await registerAnew(made, "b");
  made.advanceClock(60);
  await made.plan();
  expect((await made.group()).status).toMatchObject({ state: "Halted", clusters: { ready: 0, failed: 1, waiting: 1 } });
  await made.operate({ reconcile: ana(made.now) });
  await playOn(made);
  expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { ready: 2 } });
});
