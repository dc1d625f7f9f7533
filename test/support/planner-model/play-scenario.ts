import { expect } from "vitest";
import { ModelGroup } from "#test/support/planner-model/model-group.ts";
import { expectNamedWaits } from "#test/support/planner-model/named-waits.ts";
import { expectOwnRollout } from "#test/support/planner-model/own-rollout.ts";
import { fewClusters, PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { Play, type Scenario } from "#test/support/planner-model/planner-steps.ts";
import { expectTrueCounts } from "#test/support/planner-model/true-counts.ts";

/**
 * Plays a scenario against what always holds; then lets the disturbances end, and expects the end that a quiet run has:
 * where a freeze lasts, a rest of all others; then a rest of all, complete or halted with its reason, and after one more revision every cluster at it.
 */
export async function playScenario({ steps, begins, frozen, ahead, ...fleet }: Scenario): Promise<void> {
  const { length: clusters } = fleet.rings;
  const model = new PlannerModel(clusters);
  const { rings, strategy, templates, paths, guard } = fleet;
  const story = new Play(model, { rings, group: new ModelGroup(strategy, templates, paths, guard) });
  await story.begin(begins);
  if (ahead !== undefined) model.ahead = ahead;
  for (const step of steps) {
    const times = step.do === "deliver" ? Math.ceil(clusters / fewClusters) : 1;
    for (let time = 0; time < times; time++) await story.step(step);
  }

  await model.rest();
  await expectNamedWaits(model);
  if (frozen !== undefined)
    expect(await model.calm({ name: "lasting", labels: { ring: `r${frozen}` } }), describe(model)).toBe(true);
  expect(await model.calm(), describe(model)).toBe(true);
  expectOwnRollout(model);
  if (model.watch.restored.check(model.watch) > 0) {
    // A reconcile also reaches the others, so no catch-up is left.
    await story.act({ do: "reconcile" });
    expect(await model.calm(), describe(model)).toBe(true);
    model.watch.restored.check(model.watch);
  }
  expect(model.servers.excesses(), "more clusters were changing than allowed").toEqual([]);
  await expectNoRepeatedWrites(model);
  await expectTrueCounts(model);
  // Otherwise no rollout would pass a first stage without clusters, and an undisturbed run would apply nothing.
  story.group.makeOptional();
  await story.setGroup();
  await story.act({ do: "revise", rollout: 9 });
  await story.act({ do: "reconcile" });
  expect(await model.calm(), describe(model)).toBe(true);
  expect(model.servers.excesses(), "more clusters were changing than allowed").toEqual([]);
  await expectNoRepeatedWrites(model);
  await expectTrueCounts(model);
  if (model.isGone() || isDeleting(model)) {
    expect(model.summary()).toEqual({ syncs: [], status: {} });
    return;
  }
  expect(model.summary()).toEqual(await quietRun(story));
}

/** The result of the same fleet, group and revision without disturbances. */
async function quietRun(story: Play): Promise<unknown> {
  const model = new PlannerModel(story.fleet.size);
  const quiet = new Play(model, { rings: [], group: story.group });
  for (const [name, cluster] of story.fleet) await model.setCluster(name, cluster);
  await quiet.revise(story.commits, 9);
  await quiet.setGroup();
  expect(await model.calm()).toBe(true);
  return model.summary();
}

/** A second run without news writes nothing, and skipped revisions are recorded. */
async function expectNoRepeatedWrites(model: PlannerModel): Promise<void> {
  await model.plan({});
  const before = model.table.effects;
  await model.plan({});
  expect(model.table.effects - before, "writes of a run without news").toBe(0);
  const rolloutState = model.watch.rolloutState();
  if (rolloutState !== undefined && !model.isGone()) model.watch.skipped.check(rolloutState);
}

function isDeleting(model: PlannerModel): boolean {
  const [group] = model.watch.rowsOf("SyncGroup") as unknown as { operations: { deletion?: unknown } }[];
  return group?.operations.deletion !== undefined;
}

function describe(model: PlannerModel): string {
  const rolloutState = model.watch.rolloutState();
  const stageRuns = model.world
    .stageRuns()
    .slice(-3)
    .map(({ rollout, stage, phase, counts }) => ({ rollout, stage, phase, counts }));
  return `came to a stop: ${JSON.stringify({ stages: rolloutState?.stages, catchUps: rolloutState?.catchUps, jobs: rolloutState?.jobs, stageRuns })}`;
}
