import { expect, test } from "vitest";
import { PlannerWorld } from "#test/support/planner-world.ts";

const stages = [{ name: "first", clusters: { selector: { matchLabels: { ring: "first" } } } }, { name: "rest" }];

async function recover(made: PlannerWorld, number: number): Promise<void> {
  await made.operate({ recovered: { by: "ana", at: made.now.toISOString(), number } });
}

test("a rollout that was open when rows went on from their clusters gives nothing more of its older plan", async () => {
  const made = new PlannerWorld();
  await made.addCluster("a", "first");
  await made.addCluster("b", "rest");
  await made.addCluster("c", "rest");
  await made.setSource("old");
  await made.setGroup({ stages, maxConcurrent: 1 });
  for (let round = 0; round < 6; round++) {
    await made.plan();
    await made.renderAll();
    if (round === 3) await made.observe("a", "Ready");
  }
  await made.plan();
  expect((await made.sync("b"))?.desired.revision).toBe("main@sha1:old");
  await made.setSource("new");
  await made.plan();
  // What is past its first stage is finished first, as long as its rows are what they were.
  expect((await made.head())?.open).toBe(1);
  await recover(made, 1);
  await made.plan();
  expect(await made.head()).toMatchObject({ open: 2, recoveredFor: 1 });
  await made.observe("b", "Ready");
  await made.rollOut();
  for (const name of ["a", "b", "c"]) {
    expect((await made.sync(name))?.desired.revision, name).toBe("main@sha1:new");
  }
  const { last } = (await made.head()) ?? { last: 0 };
  await made.plan();
  expect((await made.head())?.last).toBe(last);
});

test("where none is open, everything is looked at once", async () => {
  const made = new PlannerWorld();
  await made.addCluster("a", "all");
  await made.setSource("one");
  await made.setGroup({});
  await made.rollOut();
  await recover(made, 1);
  await made.rollOut();
  expect(await made.head()).toMatchObject({ last: 2, recoveredFor: 1 });
  await made.plan();
  expect((await made.head())?.last).toBe(2);
});
