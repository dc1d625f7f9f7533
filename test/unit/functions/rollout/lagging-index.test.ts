import { describe, expect, test } from "vitest";
import { MemoryTable } from "#test/support/memory-table.ts";
import { lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { begin, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** An index that is not updated any more: it keeps the state of this moment. */
async function indexOfNow({ table }: PlannerWorld): Promise<MemoryTable> {
  const older = new MemoryTable();
  for (const put of table.all()) await older.write([{ put }]);
  return older;
}

const bad = [
  ["Failed", { failed: 1, unreachable: 0 }],
  ["Unreachable", { failed: 0, unreachable: 1 }],
] as const;

describe.each(["no entry", "an older state"] as const)("while the index has %s of a cluster that joined", (has) => {
  test.each(bad)("a group is not Complete when a cluster that joined is %s", async (phase, counts) => {
    const made = await worldOf(["a"], { maxConcurrent: 1 });
    await made.rollOut();
    made.advanceClock(600);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
    await made.addCluster("b", "all");
    await begin(made);
    const index = has === "no entry" ? new MemoryTable() : await indexOfNow(made);
    await made.finish("b", phase);
    const behind = lagging(made.table, index);
    await made.plan(behind);
    const { state, clusters } = (await made.group()).status;
    expect(["Degraded", "Reconciling"]).toContain(state);
    expect(clusters).toMatchObject({ selected: 2, ...counts });
    await made.observe("b", "Ready");
    made.advanceClock(60);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
  });
});

describe("while the index says that every cluster is ready", () => {
  async function settled() {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, maxUnreachable: 3 });
    await made.rollOut();
    made.advanceClock(600);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
    return { made, behind: lagging(made.table, await indexOfNow(made)) };
  }

  test.each(bad)(
    "a group is not Complete when an idle cluster becomes %s and a message names it",
    async (phase, counts) => {
      const { made, behind } = await settled();
      await made.observe("b", phase);
      await made.plan(behind, ["b"]);
      expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { ready: 2, ...counts } });
      // The report of another cluster meanwhile does not change that.
      made.advanceClock(5);
      await made.plan(behind, ["c"]);
      expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { ready: 2, ...counts } });
      // The planner is due soon, because the index has caught up by then.
      expect((made.rolloutState().dueKey ?? "") < new Date(made.now.getTime() + 90_000).toISOString()).toBe(true);
      made.advanceClock(60);
      await made.plan();
      expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { ready: 2, ...counts } });
    },
  );

  test.each(bad)(
    "a cluster that returned and is %s once more counts as such, although the index is behind",
    async (phase) => {
      const { made } = await settled();
      await revise(made, "bbb");
      for (const { cluster } of made.slots()) await made.finish(cluster, cluster === "b" ? "Unreachable" : "Ready");
      await made.plan();
      expect(made.stages()).toEqual({ all: "2" });
      await made.observe("b", "Reachable");
      const behind = lagging(made.table, await indexOfNow(made));
      await made.plan(behind, ["b"]);
      await begin(made);
      await made.finish("b", phase);
      await made.plan(behind, ["b"]);
      const { catchUps, stages } = made.rolloutState();
      expect((await made.group()).status.state).not.toBe("Complete");
      expect(catchUps).toMatchObject(phase === "Failed" ? { failed: 1 } : { away: 1 });
      // A cluster that is unreachable does not count as a failed catch-up of its stage.
      expect(stages.map(({ failedCatchUps }) => failedCatchUps)).toEqual([phase === "Failed" ? 1 : 0]);
    },
  );
});

test("a group is Complete when its failed cluster is ready again, although the index still says Failed", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.observe("b", "Failed");
  made.advanceClock(600);
  await made.plan();
  const behind = lagging(made.table, await indexOfNow(made));
  expect((await made.group()).status.state).toBe("Degraded");
  await made.observe("b", "Ready");
  await made.plan(behind, ["b"]);
  expect((await made.group()).status.state).toBe("Complete");
});
