import { describe, expect, test } from "vitest";
import { begin, names, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const changing = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

async function finishAll(made: PlannerWorld, clusters: readonly string[]): Promise<void> {
  for (const cluster of clusters) await made.finish(cluster);
  await begin(made);
}

/** The group that docs/rollouts.md follows from beginning to end, as its status table shows it. */
async function runningExample(): Promise<PlannerWorld> {
  const fleet = Object.fromEntries([
    ["c0", "canary"],
    ...names(4, "early").map((name) => [name, "early"]),
    ...names(5, "rest").map((name) => [name, "rest"]),
  ]);
  const stages = ["canary", "early"].map((ring) => ({ name: ring, clusters: { selector: { matchLabels: { ring } } } }));
  const made = await worldOf(fleet, { stages: [...stages, { name: "rest" }], maxConcurrent: 3 });
  await made.rollOut();
  await revise(made, "bbb");
  await finishAll(made, ["c0"]);
  await finishAll(made, ["early000"]);
  await revise(made, "ccc");
  await finishAll(made, ["c0"]);
  await made.addCluster("late", "rest");
  await begin(made);
  return made;
}

describe("the example that docs/rollouts.md follows", () => {
  test("the example has three rollouts in progress, and one slot is reserved for the first stage", async () => {
    const made = await runningExample();
    expect(made.stages()).toEqual({ canary: "3", early: "1 (2)", rest: "1" });
    expect(made.stageRun("early").counts).toMatchObject({ Succeeded: 1, Assigned: 2, Waiting: 1 });
    expect(changing(made)).toEqual(["early001", "early002"]);
    expect(made.rolloutState().catchUps.waiting).toBe(1);
  });

  test("the example goes on in two stages at once after a stage has passed", async () => {
    const made = await runningExample();
    while (made.stages().early === "1 (2)") await finishAll(made, changing(made));
    expect(made.stages()).toEqual({ canary: "3", early: "2 (3)", rest: "1 (2)" });
  });

  test("the example takes the newer rollout at once where a stage has halted", async () => {
    const made = await runningExample();
    await made.finish("early001", "Failed");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "3", early: "1 (3)", rest: "1" });
    expect(changing(made)).not.toContain("early003");
  });
});

describe("the examples of docs/rollouts.md", () => {
  test("in a group of three clusters and one stage, a failure halts the stage, and the next push repairs it", async () => {
    const made = await worldOf(["a", "b", "c"], {});
    await made.rollOut();
    const before = made.rows("Rendering").length;
    await revise(made, "bad");
    expect(changing(made)).toEqual(["a"]);
    await finishAll(made, ["a"]);
    expect(changing(made)).toEqual(["b"]);
    await made.finish("b", "Failed");
    await begin(made);
    expect(made.rows("Rendering").length - before).toBe(1);
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", counts: { Succeeded: 1, Failed: 1, Assigned: 0 } });
    expect((await made.sync("b"))?.paused).toBeDefined();
    expect((await made.sync("c"))?.desired.revision).toBe("main@sha1:aaa");
    await revise(made, "good");
    const order: string[] = [];
    while (changing(made).length > 0) {
      order.push(...changing(made));
      await finishAll(made, changing(made));
    }
    expect(order).toEqual(["a", "b", "c"]);
    expect(made.stages()).toEqual({ all: "3" });
  });

  test("in a group with a canary stage, a halted stage takes the next rollout after the canary has passed it", async () => {
    const canary = names(3, "canary");
    const rest = names(27, "rest");
    const fleet = Object.fromEntries([
      ...canary.map((name) => [name, "canary"]),
      ...rest.map((name) => [name, "rest"]),
    ]);
    const made = await worldOf(fleet, rings);
    await made.rollOut();
    await revise(made, "bbb");
    expect(changing(made)).toEqual(canary);
    await finishAll(made, canary);
    expect(changing(made)).toEqual(["rest000", "rest001"]);
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    expect(changing(made)).toEqual(["canary000", "rest000", "rest001"]);
    await made.addCluster("joiner", "rest");
    await begin(made);
    await made.finish("rest000", "Failed");
    await finishAll(made, ["rest001"]);
    expect(made.stageRun("rest")).toMatchObject({ rollout: 2, phase: "Halted" });
    await finishAll(made, ["canary000"]);
    expect((await made.sync("joiner"))?.desired).toMatchObject({ rollout: 1, revision: "main@sha1:aaa" });
    for (let round = 0; made.stages().canary !== "3"; round++) {
      expect(round).toBeLessThan(5);
      await finishAll(made, changing(made));
    }
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (3)" });
  });

  test("in a group with four stages and frequent commits, each stage finishes its rollout, and the last stage skips some", async () => {
    const stages = ["canary", "early", "wide"].map((ring) => ({
      name: ring,
      clusters: { selector: { matchLabels: { ring } } },
    }));
    const fleet = {
      c: "canary",
      e: "early",
      w: "wide",
      ...Object.fromEntries(names(4, "r").map((name) => [name, "r"])),
    };
    const made = await worldOf(fleet, { stages: [...stages, { name: "rest" }], maxConcurrent: 4 });
    await made.rollOut();
    await revise(made, "bbb");
    for (const cluster of ["c", "e", "w"]) await finishAll(made, [cluster]);
    for (const commit of ["ccc", "ddd", "eee"]) {
      await revise(made, commit);
      for (const cluster of ["c", "e", "w"]) await finishAll(made, [cluster]);
    }
    expect(made.stages()).toEqual({ canary: "5", early: "5", wide: "5", rest: "1 (2)" });
    while (made.stageRun("rest").rollout === 2) await finishAll(made, changing(made));
    expect(made.stages()).toMatchObject({ rest: "2 (5)" });
  });
});
