import fc from "fast-check";
import { expect, test } from "vitest";
import { type Scenario, scenario, Play } from "#test/support/planner-model/planner-steps.ts";
import { PlannerModel } from "#test/support/planner-model/planner-model.ts";

const numRuns = Number(process.env["STARLING_PROPERTY_RUNS"] ?? 60);
const given = process.env["STARLING_PROPERTY_SEED"];
const seed = given === undefined ? Date.now() % 2 ** 31 : Number(given);

test(`whatever happens, what the planner promises holds (seed ${seed})`, { timeout: 0 }, async () => {
  await fc.assert(fc.asyncProperty(scenario, play), { seed, numRuns });
});

async function play({ steps, ...fleet }: Scenario): Promise<void> {
  const model = new PlannerModel();
  const story = new Play(model, fleet);
  await story.begin();
  for (const step of steps) await story.step(step);

  expect(await model.calm(), describe(model)).toBe(true);
  await looksTwice(model);
  await story.act({ do: "revise", content: 9 });
  await story.act({ do: "reconcile" });
  expect(await model.calm(), describe(model)).toBe(true);
  await looksTwice(model);
  if (model.isGone() || isDeleting(model)) {
    expect(model.summary()).toEqual({ syncs: [], status: {} });
    return;
  }
  expect(model.summary()).toEqual(await quietRun(story));
}


/** The same fleet, group and revision, with nothing in between. */
async function quietRun(story: Play): Promise<unknown> {
  const model = new PlannerModel();
  const quiet = new Play(model, { rings: [], strategy: story.strategy, templates: story.templates, paths: story.paths });
  for (const [name, cluster] of story.fleet) await model.setCluster(name, cluster);
  await quiet.revise(story.commits, 9);
  await quiet.setGroup();
  expect(await model.calm()).toBe(true);
  return model.summary();
}

/** What was seen once and is seen again writes nothing. */
async function looksTwice(model: PlannerModel): Promise<void> {
  await model.plan({});
  const before = model.table.effects;
  await model.plan({});
  expect(model.table.effects - before, "writes of a look that saw nothing new").toBe(0);
}

function isDeleting(model: PlannerModel): boolean {
  const [group] = model.watch.rowsOf("SyncGroup") as unknown as { operations: { deletion?: unknown } }[];
  return group?.operations.deletion !== undefined;
}

function describe(model: PlannerModel): string {
  const rollout = model.world.rollouts().at(-1);
  return `came to rest; rollout ${rollout?.number} is ${rollout?.phase}: ${rollout?.message}`;
}
