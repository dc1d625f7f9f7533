/**
 * Clusters that a newer version registered before this version was deployed: it cannot know whether a group selects
 * them.
 */
import { describe, expect, test } from "vitest";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { counting, names, playOn, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const selections = {
  "that selects all clusters": () => ({ all: true }),
  "that selects clusters by label": () => ({ selector: { matchLabels: { ring: "all" } } }),
  "that selects clusters by name": (count: number) => ({ names: ["a", ...names(count)] }),
};

async function writeAsNewer(made: PlannerWorld, clusters: readonly string[]): Promise<void> {
  for (const cluster of clusters) {
    await made.addCluster(cluster, "all");
    await made.table.write([{ update: keys.fleet(cluster), set: { schema: newestRowSchema + 1 } }]);
  }
}

async function makeReadable(made: PlannerWorld, clusters: readonly string[]): Promise<void> {
  for (const cluster of clusters) await made.table.write([{ update: keys.fleet(cluster), set: { schema: rowSchema } }]);
}

describe.each(Object.entries(selections))("a group %s", (_, selection) => {
  test.each([1, 120])(
    "a group selects %i clusters that a newer version registered as soon as their rows are readable",
    async (count) => {
      const made = await worldOf(["a"], { maxConcurrent: "100%" }, undefined, selection(count));
      await made.rollOut();
      await writeAsNewer(made, names(count));
      await playOn(made, 3);
      expect((await made.group()).status.clusters?.selected).toBe(1);
      await makeReadable(made, names(count));
      await playOn(made);
      expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: count + 1 } });
    },
  );
});

test("a check of unreadable clusters writes nothing, and costs one request", async () => {
  const made = await worldOf(["a"], { maxConcurrent: "100%" });
  await made.rollOut();
  made.advanceClock(3600);
  await made.plan();
  const idle = counting(made.table);
  await made.plan(idle.table);
  await writeAsNewer(made, names(3));
  await made.plan();
  const before = made.table.all();
  const checked = counting(made.table);
  await made.plan(checked.table);
  expect(made.table.all()).toEqual(before);
  expect(checked.requests()).toBe(idle.requests() + 1);
  // An older version writes an entry.
  await made.table.write([fleetVersionUpdate("c000")]);
  await made.plan();
  await makeReadable(made, names(3));
  await playOn(made);
  expect((await made.group()).status.clusters?.selected).toBe(4);
});
