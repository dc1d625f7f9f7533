import { expect, test } from "vitest";
import { MemoryTable } from "#test/support/memory-table.ts";
import { lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { begin, worldOf } from "#test/support/planner-story.ts";

test.each([
  ["Failed", { ready: 1, failed: 1, unreachable: 0 }],
  ["Unreachable", { ready: 1, failed: 0, unreachable: 1 }],
] as const)("a group is not Complete while the index has not heard that a joiner is %s", async (phase, counts) => {
  const made = await worldOf(["a"], { maxConcurrent: 1 });
  await made.rollOut();
  made.advanceClock(600);
  await made.plan();
  expect((await made.group()).status.state).toBe("Complete");
  await made.addCluster("b", "all");
  await begin(made);
  await made.finish("b", phase);
  const behind = lagging(made.table, new MemoryTable());
  await made.plan(behind);
  expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { selected: 2, ...counts } });
  await made.observe("b", "Ready");
  made.advanceClock(60);
  await made.plan();
  expect((await made.group()).status.state).toBe("Complete");
});
