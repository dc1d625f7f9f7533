/** A stage is inserted before a stage whose stage run is in progress: the later stages wait for the new stage. */
import { describe, expect, test } from "vitest";
import { allSay, begin, playOn, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const stage = (name: string) => ({ name, clusters: { selector: { matchLabels: { ring: name } } } });
const rest = { name: "rest" };
const fleet = { a: "canary", b: "early", c: "rest", d: "rest" };

const revisionOf = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster))?.desired.revision;
const working = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

async function checkOften(made: PlannerWorld): Promise<void> {
  for (let round = 0; round < 5; round++) await begin(made);
}

async function stagesOf(made: PlannerWorld, ...names: readonly string[]): Promise<void> {
  await made.setGroup({ stages: [...names.map(stage), rest], maxConcurrent: "100%" });
}

describe("a canary stage that is inserted before the first stage", () => {
  test("a stage behind an inserted canary and an empty stage gets no rollout that the canary has not passed", async () => {
    const made = await worldOf(fleet, { stages: [stage("nobody"), rest], maxConcurrent: "100%" });
    await begin(made);
    expect(made.stageRun("nobody").phase).toBe("NothingVerified");
    await stagesOf(made, "canary", "nobody");
    await checkOften(made);
    expect(working(made)).toEqual(["a"]);
    await allSay(made, "Failed");
    await checkOften(made);
    expect(made.stageRun("canary").phase).toBe("Halted");
    expect(working(made)).toEqual([]);
    expect(await revisionOf(made, "c")).toBeUndefined();
  });

  test("the former first stage, in the middle of a stage run, waits for the inserted canary, and so do later stages", async () => {
    const made = await worldOf(fleet, { stages: [stage("early"), rest], maxConcurrent: "100%" });
    await made.rollOut();
    await revise(made, "bbb");
    expect(working(made)).toEqual(["b"]);
    await stagesOf(made, "canary", "early");
    await begin(made);
    expect(working(made)).toEqual(["a", "b"]);
    await made.finish("b");
    await checkOften(made);
    expect(working(made)).toEqual(["a"]);
    await allSay(made, "Failed");
    await checkOften(made);
    expect(await revisionOf(made, "c")).toBe("main@sha1:aaa");
    await made.setSource("ccc");
    await playOn(made);
    expect((await made.group()).status.state).toBe("Complete");
    expect(await Promise.all(Object.keys(fleet).map((cluster) => revisionOf(made, cluster)))).toEqual(
      Array.from({ length: 4 }, () => "main@sha1:ccc"),
    );
  });

  test("the former first stage goes on with its stage run when the inserted canary has passed that rollout", async () => {
    const made = await worldOf({ ...fleet, e: "early" }, { stages: [stage("early"), rest], maxConcurrent: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.setGroup({ stages: [stage("canary"), stage("early"), rest], maxConcurrent: 1 });
    await allSay(made, "Ready");
    await checkOften(made);
    expect(working(made)).toEqual(["a"]);
    await allSay(made, "Ready");
    await checkOften(made);
    expect(made.stages()).toEqual({ canary: "2", early: "1 (2)", rest: "1" });
    expect(working(made)).toEqual(["e"]);
    await playOn(made);
    expect(made.stageRun("early").counts).toMatchObject({ Succeeded: 2, Unchanged: 0 });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test.each(["pipeline", "finish"] as const)(
    "a newer rollout takes over when the canary and the former first stage have both halted (%s)",
    async (how) => {
      const made = await worldOf(fleet, { stages: [stage("early"), rest], supersede: how });
      await made.rollOut();
      await revise(made, "bbb");
      await made.setGroup({ stages: [stage("canary"), stage("early"), rest], supersede: how });
      await checkOften(made);
      await allSay(made, "Failed");
      await checkOften(made);
      await allSay(made, "Failed");
      await made.setSource("ccc");
      await playOn(made);
      expect(made.stages()).toEqual({ canary: "3", early: "3", rest: "3" });
    },
  );
});

test("a stage run goes on when its removed predecessor is inserted again, and a newer rollout completes the group", async () => {
  const made = await worldOf(
    { ...fleet, e: "early" },
    { stages: [stage("canary"), stage("early"), rest], maxConcurrent: 2 },
  );
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, "Ready");
  await begin(made);
  await revise(made, "ccc");
  expect(made.stages()).toEqual({ canary: "2 (3)", early: "1 (2)", rest: "1" });
  await made.setGroup({ stages: [stage("early"), rest], maxConcurrent: 2 });
  await begin(made);
  await made.setGroup({ stages: [stage("canary"), stage("early"), rest], maxConcurrent: 2 });
  await playOn(made);
  expect(made.stages()).toMatchObject({ canary: "3", early: "2" });
  expect((await made.group()).status.state).toBe("Stalled");
  await made.setSource("ddd");
  await playOn(made);
  expect((await made.group()).status.state).toBe("Complete");
});

test("a stage whose failed cluster was unregistered has verified nothing, also when a stage is inserted before it", async () => {
  const stages = [stage("canary"), stage("early"), rest];
  const made = await worldOf(fleet, { stages, maxConcurrent: "100%" });
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("a");
  await begin(made);
  expect(working(made)).toEqual(["b"]);
  await allSay(made, "Failed");
  await made.removeCluster("b");
  await made.setGroup({ stages: [stages[0], stage("nobody"), ...stages.slice(1)] as never, maxConcurrent: "100%" });
  await checkOften(made);
  expect(made.stageRun("early").phase).toBe("NothingVerified");
  expect(await revisionOf(made, "c")).toBe("main@sha1:aaa");
});
