/** Cordons: nothing new is assigned to a cordoned cluster, and it holds no other back. */

import { describe, expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { allSay, begin, playOn, register, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;
const everywhere = { ...rings, maxConcurrent: 5 };

/** Sends a request, and then the planner its messages. */
async function ask(made: PlannerWorld, method: string, to: string, body?: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const answer = await api.call(method, to, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body;
}

async function cordon(made: PlannerWorld, cluster: string, until?: string): Promise<void> {
  await register(made, cluster);
  await ask(made, "POST", `/v1/clusters/${cluster}/cordon`, { reason: "INC-1", ...(until && { until }) });
  await made.plan(made.table, [cluster]);
}

async function uncordon(made: PlannerWorld, cluster: string): Promise<void> {
  await ask(made, "POST", `/v1/clusters/${cluster}/uncordon`, {});
  await made.plan(made.table, [cluster]);
}

async function waits(made: PlannerWorld) {
  const { status } = await ask(made, "GET", `${path}/rollout`);
  const found: readonly { reason: string; message: string; clear: readonly object[] }[] = status.waits;
  return found.filter(({ reason }) => reason === "cordoned");
}

async function revisionOf(made: PlannerWorld, cluster: string): Promise<string | undefined> {
  return (await made.sync(cluster))?.desired.revision;
}

/** The hour of a bake is over, and these clusters answer the check at its end. */
async function endBake(made: PlannerWorld, clusters: readonly string[]): Promise<void> {
  made.advanceClock(3600);
  await playOn(made);
  for (const cluster of clusters) await made.observe(cluster, "Ready");
  await playOn(made);
}

describe("cordons in the planner", () => {
  test("a cordoned cluster gets nothing new, and the stage passes on the evidence of the others", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest", c3: "rest" }, everywhere);
    await made.rollOut();
    await cordon(made, "c2");
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect(await revisionOf(made, "c2")).toContain("aaa");
    expect(await revisionOf(made, "c3")).toContain("bbb");
    expect(made.stageRun("rest")).toMatchObject({
      phase: "Passed",
      message: "stage rest passed: 1 succeeded, 1 cordoned",
      counts: { Succeeded: 1, Skipped: 1, Waiting: 0 },
      holds: [],
    });
    expect(made.states()).toMatchObject({ c2: "Skipped", c3: "Succeeded" });
    const { status } = await made.group();
    expect(status).toMatchObject({ state: "Held", clusters: { selected: 3, ready: 2, waiting: 1 } });
    expect(status.conditions[0]?.message).toMatch(/^cluster c2 is cordoned by .*: INC-1 \(starling uncordon c2\)$/);
    expect(await waits(made)).toMatchObject([
      {
        message: expect.stringMatching(/^cluster c2 waits to catch up: cordoned by .*: INC-1$/),
        clear: [{ verb: "uncordon", cluster: "c2" }],
      },
    ]);
  });

  test("a cordoned cluster catches up after the uncordon", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest", c3: "rest" }, everywhere);
    await made.rollOut();
    await cordon(made, "c2");
    await revise(made, "bbb");
    await playOn(made);
    await uncordon(made, "c2");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2"]);
    await playOn(made);
    expect(await revisionOf(made, "c2")).toContain("bbb");
    expect((await made.group()).status.state).toBe("Complete");
    expect(await waits(made)).toEqual([]);
  });

  test("a cordoned cluster that is the only canary is held and never passed, and a newer rollout may replace its own", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await cordon(made, "c1");
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Updating",
      holds: [{ cause: "cordon", name: "c1", clusters: [0] }],
      schema: newestRowSchema,
    });
    expect((await made.group()).status.state).toBe("Held");
    await revise(made, "ccc");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1 (3)", rest: "1" });
    await uncordon(made, "c1");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  });

  test("a cordoned cluster does not hide that the others failed", async () => {
    const made = await worldOf({ c1: "rest", c2: "rest" }, { maxConcurrent: 5 });
    await made.rollOut();
    await cordon(made, "c1");
    await revise(made, "bbb");
    await allSay(made, "Failed");
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted" });
    expect(await waits(made)).toHaveLength(1);
  });

  test("a cordoned cluster whose worker has not begun loses its slot, and one whose worker has begun finishes", async () => {
    const made = await worldOf(["c1", "c2"], { maxConcurrent: 2 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("c1", "Applying");
    await cordon(made, "c1");
    await cordon(made, "c2");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c1"]);
    const paused = await made.sync("c2");
    expect(paused?.paused?.reason).toMatch(/^cordoned by .*: INC-1$/);
    expect(paused && syncStateOf(paused)).toBe("Assigned");
    expect((await made.sync("c1"))?.paused).toBeUndefined();
    await playOn(made);
    expect(made.states()).toMatchObject({ c1: "Succeeded", c2: "Skipped" });
    await uncordon(made, "c2");
    await playOn(made);
    expect((await made.sync("c2"))?.paused).toBeUndefined();
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a cordoned cluster does not end the bake of the others, and catches up with what has baked", async () => {
    const stages = [{ name: "all", after: [{ bake: "1h" }] }];
    const made = await worldOf(["c1", "c2"], { maxConcurrent: 2, stages });
    await playOn(made);
    await endBake(made, ["c1", "c2"]);
    expect(made.stages()).toEqual({ all: "1" });
    await cordon(made, "c1");
    await revise(made, "bbb");
    await allSay(made, "Ready");
    expect(made.stageRun("all").phase).toBe("Baking");
    expect(await waits(made)).toHaveLength(1);
    await endBake(made, ["c2"]);
    expect(made.stages()).toEqual({ all: "2" });
    expect(await revisionOf(made, "c1")).toContain("aaa");
    await uncordon(made, "c1");
    await playOn(made);
    expect(await revisionOf(made, "c1")).toContain("bbb");
  });

  test("a cordoned cluster counts against no budget beside one that does not answer", async () => {
    const made = await worldOf(["c1", "c2", "c3"], { maxConcurrent: 3 });
    await made.rollOut();
    await cordon(made, "c1");
    await revise(made, "bbb");
    await made.finish("c2", "Unreachable");
    await made.finish("c3");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Unreachable: 1, Skipped: 1 } });
  });

  test("a cordoned cluster that joins waits with its catch-up", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await made.addCluster("j1", "rest");
    await cordon(made, "j1");
    await begin(made);
    expect(await made.sync("j1")).toBeUndefined();
    expect(made.rolloutState().catchUpsHeld?.holds).toEqual([{ cause: "cordon", name: "j1", clusters: 1 }]);
    await uncordon(made, "j1");
    await playOn(made);
    expect(await revisionOf(made, "j1")).toContain("aaa");
  });

  test("a cordoned cluster goes on by itself when the time of its cordon is over, for which the planner is due", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest", c3: "rest" }, everywhere);
    await made.rollOut();
    const until = new Date(made.now.getTime() + 20_000).toISOString();
    await cordon(made, "c2", until);
    await revise(made, "bbb");
    await allSay(made, "Ready");
    await made.renderAll();
    await allSay(made, "Ready");
    await made.plan();
    expect(dueAtOf(made.rolloutState().dueKey ?? "")).toBe(until);
    expect(await revisionOf(made, "c2")).toContain("aaa");
    made.advanceClock(20);
    await playOn(made);
    expect(await revisionOf(made, "c2")).toContain("bbb");
  });

  test("a cordoned cluster is emptied by the deletion of its group", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await cordon(made, "c1");
    await ask(made, "DELETE", `${path}?confirm=true`);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toContain("c1");
    await cordon(made, "c2");
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toContain("c1");
  });
});
