/** How many catch-ups one call checks, and which renderings it asks for. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, begin, counting, names, ownPaths, playOn, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const prod = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };
const renderings = (made: PlannerWorld) => made.rows<RenderingRow>("Rendering").length;

/** Catch-ups have one slot. */
async function joined(clusters: readonly string[]): Promise<PlannerWorld> {
  const made = await worldOf(["a"], { maxConcurrent: 2 }, ownPaths);
  await made.rollOut();
  for (const name of clusters) await made.addCluster(name, "all");
  return made;
}

test("the planner does not record that it checked all catch-ups while it still has renderings to ask for", async () => {
  const made = await joined(names(30, "n"));
  await made.plan();
  expect(renderings(made)).toBe(1 + 6);
  expect(made.rolloutState()).not.toHaveProperty("catchUpsHeld");
});

test("the planner asks for as many renderings although one of the first catch-ups is frozen", async () => {
  const made = await joined([]);
  const freeze = { name: "inc-1", by: "ana", at: made.now.toISOString(), reason: "INC-1", clusters: prod };
  await made.setFreezes({ freezes: [freeze] });
  await made.addCluster("n000", "all", { labels: { env: "prod" } });
  await begin(made);
  expect(renderings(made)).toBe(1 + 1);
  for (const name of names(30, "n").slice(1)) await made.addCluster(name, "all");
  await made.plan();
  expect(renderings(made)).toBe(2 + 6);
});

test("a catch-up row that a newer version wrote is reported as unreadable, and the next catch-up gets the slot", async () => {
  const made = await joined(names(3, "n"));
  await made.plan();
  await made.table.write([{ update: keys.catchUp(owner, "waiting", "n000"), set: { schema: newestRowSchema + 1 } }]);
  await made.renderAll();
  await made.plan();
  expect(made.rolloutState().unreadable).toEqual(["n000"]);
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["n001"]);
});

test("no more clusters get slots than are free, however many join", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 3 });
  await made.rollOut();
  for (const name of names(30, "n")) await made.addCluster(name, "all");
  await made.plan();
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["n000", "n001"]);
});

test("a call whose time ends while it checks catch-ups asks for another call", async () => {
  const made = await joined(names(40, "n"));
  for (let check = 0; check < 12; check++) await made.plan();
  expect(made.rolloutState().catchUpsHeld).toMatchObject({ holds: [{ cause: "rendering", clusters: 40 }] });
  made.sender.take();
  const { table } = made;
  let read = 0;
  const getMany: typeof table.getMany = (desired, reading) => {
    made.advanceClock(10);
    read++;
    return table.getMany(desired, reading);
  };
  await made.plan({ ...counting(table).table, getMany }, []);
  expect(made.sender.take()).toEqual([{ to: "rollout", owner, clusters: [] }]);
  expect(read).toBeLessThan(10);
});

test("clusters that change stage and already have its current rollout do not wait, however many they are", async () => {
  const fleet = Object.fromEntries(names(130).map((name) => [name, "canary"]));
  const made = await worldOf(fleet, { ...rings, maxConcurrent: "100%" });
  await made.rollOut();
  await made.setGroup({ ...rings, maxConcurrent: 3 });
  for (const name of names(130)) await made.addCluster(name, "rest");
  await made.plan();
  expect(made.rolloutState()).toMatchObject({
    catchUps: { waiting: 0, changing: 0, failed: 0 },
    stages: [{}, { members: 130 }],
  });
});

describe("a cluster that joins and fails", () => {
  test("clusters that cannot be rendered stop no other cluster from catching up, however many they are", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 2 }, ownPaths);
    await made.rollOut();
    for (const name of ["bad0", "bad1", "bad2"]) await made.addCluster(name, "all");
    await made.plan();
    await made.renderAll("no kind");
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 3 }, stages: [{ failedCatchUps: 0 }] });
    await made.addCluster("good", "all");
    await playOn(made, 3);
    expect((await made.sync("good"))?.observed?.phase).toBe("Ready");
  });

  test("a cluster on which the apply fails stops no other cluster from catching up", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 2 });
    await made.rollOut();
    await made.addCluster("bad", "all");
    await begin(made);
    await allSay(made, "Failed");
    await made.addCluster("good", "all");
    await playOn(made, 3);
    expect((await made.sync("good"))?.observed?.phase).toBe("Ready");
  });
});
