import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, begin, revise, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 3, maxUnreachable: 1 };

/** `a` was not ready before rollout 2, and has a slot for it. */
async function unhealthy(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b", "c"], pace);
  await made.rollOut();
  await made.observe("a", "Failed");
  await revise(made, "bbb");
  expect(made.slots()).toHaveLength(3);
  return made;
}

describe("the failure of a cluster that was not ready before its stage's rollout", () => {
  test("the failure counts as preexisting after the cluster was unreachable for a moment", async () => {
    const made = await unhealthy();
    await made.finish("a", "Unreachable");
    await made.plan();
    await made.observe("a", "Reachable");
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(3);
    await made.finish("a", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", counts: { Failed: 1 }, preexistingFailures: 1 });
    expect(made.targets()).toMatchObject([{ cluster: "a", preexisting: true }]);
  });

  test("the failure counts as preexisting after the cluster's row was unreadable for a moment", async () => {
    const made = await unhealthy();
    const key = keys.sync("a", owner.namespace, "web.app");
    await made.table.write([{ update: key, set: { schema: newestRowSchema + 1 } }]);
    made.advanceClock(700);
    await made.plan();
    expect(made.stageRun("all").counts).toMatchObject({ Unreachable: 1 });
    await made.table.write([{ update: key, set: { schema: rowSchema } }]);
    await made.plan();
    await made.finish("a", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ counts: { Failed: 1 }, preexistingFailures: 1 });
  });

  test.each(["with a slot", "paused"])(
    "the failure counts as preexisting after the cluster was not selected for a moment, %s",
    async (situation) => {
      const made = await unhealthy();
      if (situation === "paused") await made.finish("a", "Failed");
      await made.finish("b", "Failed");
      await made.plan();
      expect(made.stageRun("all").phase).toBe("Halted");
      await made.setGroup(pace, web, { names: ["b", "c"] });
      await made.plan();
      expect((await made.sync("a"))?.desired.action).toBe("orphan");
      await made.setSource("ccc");
      await made.setGroup(pace, web);
      await begin(made);
      expect(made.stages()).toEqual({ all: "1 (3)" });
      await made.observe("a", "Failed");
      await made.plan();
      expect(made.stageRun("all")).toMatchObject({ counts: { Failed: 1 }, preexistingFailures: 1 });
    },
  );

  test("the failure counts against the budget where the cluster was only forgotten in the middle of an attempt", async () => {
    const made = await worldOf(["b", "c"], pace);
    await made.rollOut();
    await made.addCluster("a", "all");
    await begin(made);
    await made.observe("a", "Applying");
    await made.setGroup(pace, web, { names: ["b", "c"] });
    await made.plan();
    await made.setGroup(pace, web);
    await revise(made, "bbb");
    expect(made.states()).toEqual({ a: "Assigned", b: "Assigned", c: "Assigned" });
    await made.finish("a", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", preexistingFailures: 0 });
  });

  test("the failure counts against the budget after the cluster was ready", async () => {
    const made = await unhealthy();
    await allSay(made, "Ready");
    await revise(made, "ccc");
    await made.finish("a", "Failed");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", preexistingFailures: 0 });
  });
});
