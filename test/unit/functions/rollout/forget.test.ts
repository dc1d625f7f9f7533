import { expect, test } from "vitest";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { ana, web, worldOf } from "#test/support/planner-story.ts";

test("a Sync whose template is disabled for its cluster is forgotten once, and does not hold up the group's deletion", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  const overrides = [{ clusters: { names: ["b"] }, disabled: true }];
  await made.setGroup(
    { maxConcurrent: 2 },
    web.map((template) => ({ ...template, overrides })),
  );
  await made.rollOut();
  const kept = await made.sync("b");
  expect(kept).toMatchObject({ desired: { action: "orphan", attempt: 2 }, observed: { phase: "Ready" } });
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  for (let round = 0; round < 3; round++) {
    await made.plan(new DisturbedPorts(made, { mostCalls: 300 }).table);
    for (const { cluster } of made.slots()) await made.finish(cluster, "Gone");
  }
  expect(made.rows("SyncGroup")).toEqual([]);
  expect(await made.sync("b")).toEqual(kept);
});
