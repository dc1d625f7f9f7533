import { expect, test } from "vitest";
import type { MessageSender } from "#shared/ports.ts";
import { allSay, begin, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** The stage runs that were reported since the last call, each with its present message. */
function reported(made: PlannerWorld): readonly string[] {
  const reports = made.sender.take().filter((message) => message.to === "report");
  return reports.flatMap(({ about }) => {
    if (about.kind !== "Rollout") return [];
    const { rollout, stage, snapshot } = about.stageRun;
    const stageRun = made
      .stageRuns()
      .find((one) => one.rollout === rollout && one.stage === stage && one.snapshot === snapshot);
    return `${rollout}#${stage} ${stageRun?.phase}: ${stageRun?.message}`;
  });
}

test("the planner reports a stage run that another rollout superseded", async () => {
  const made = await worldOf(["a"], {});
  await begin(made);
  await allSay(made, "Failed");
  made.sender.take();
  await revise(made, "bbb");
  expect(reported(made)).toEqual(
    expect.arrayContaining([
      "1#all Superseded: rollout 2 replaced it",
      "2#all Updating: stage all begins: 1 cluster to check",
    ]),
  );
});

test("the planner reports a stage run whose stage was removed", async () => {
  const made = await worldOf({ c: "canary", r: "rest" }, rings);
  await begin(made);
  made.sender.take();
  await made.setGroup({});
  await begin(made);
  expect(reported(made)).toContain("1#canary Superseded: its stage was removed");
  expect(made.stageRuns().find(({ stage }) => stage === "canary")).not.toHaveProperty("supersededBy");
});

test("the planner reports a halted stage run again when its message changes", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 2 });
  await begin(made);
  await made.finish("a", "Failed");
  await made.plan();
  expect(reported(made)).toContain("1#all Halted: 1 of 3 clusters failed in stage all (allowed: 0): a: Failed");
  await made.finish("b", "Failed");
  await made.plan();
  expect(reported(made)).toEqual(["1#all Halted: 2 of 3 clusters failed in stage all (allowed: 0): a: Failed"]);
  await made.plan();
  expect(reported(made)).toEqual([]);
});

test("the next call reports once what a call that died did not report", async () => {
  const made = await worldOf(["a"], {});
  await begin(made);
  await made.finish("a");
  made.sender.take();
  await made.plan();
  const passed = "1#all Passed: stage all passed: 1 succeeded";
  expect(reported(made)).toContain(passed);
  await made.plan();
  expect(reported(made)).toEqual([]);

  await revise(made, "bbb");
  await made.finish("a");
  made.sender.take();
  const dying: MessageSender = {
    async send(messages) {
      if (messages.some(({ to }) => to === "report")) throw new Error("the call dies here");
    },
  };
  await expect(made.plan(made.table, undefined, dying)).rejects.toThrow("the call dies here");
  expect(made.stageRun("all").phase).toBe("Passed");
  await made.plan(made.table, []);
  expect(reported(made)).toEqual(["2#all Passed: stage all passed: 1 succeeded"]);
  await made.plan();
  expect(reported(made)).toEqual([]);
});
