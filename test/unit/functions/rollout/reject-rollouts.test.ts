/** Rejections: no stage and no cluster gets a rejected rollout, and newer ones go on. */
import { describe, expect, test } from "vitest";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { nothingSurveyed, withOwner } from "#shared/fleet/survey.ts";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object): Promise<void> {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  expect(await api.call("POST", `${path}/${verb}`, body)).toMatchObject({ status: 200 });
}

const reject = (made: PlannerWorld, rollout: number) => ask(made, "reject", { reason: "INC-1", rollout });
const unreject = (made: PlannerWorld, rollout: number) =>
  ask(made, "unreject", { reason: "it was the cluster", rollout });

/** A group whose two stages have rollout 1. */
async function group(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "canary", c3: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  return made;
}

const revisions = async (made: PlannerWorld, ...clusters: readonly string[]) =>
  Promise.all(clusters.map(async (cluster) => (await made.sync(cluster))?.desired.revision.slice(-3)));

/** Rollout 2 is rejected, rollout 3 passes, and rollout 4 has the files of 2 under another commit. */
async function groupWithLike(): Promise<PlannerWorld> {
  const made = await group();
  await revise(made, "bbb");
  await reject(made, 2);
  await playOn(made);
  await made.setSource("ccc");
  await playOn(made);
  await made.setSource("ddd", "bbb");
  await playOn(made);
  return made;
}

describe("a rejected rollout", () => {
  test("begun clusters settle, no other cluster gets it, and the next commit goes through all stages", async () => {
    const made = await group();
    await made.setGroup({ ...rings, maxConcurrent: 1 });
    await revise(made, "bbb");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c1"]);
    await made.observe("c1", "Applying");
    await reject(made, 2);
    await made.plan(undefined, []);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Rejected", counts: { Assigned: 1, Succeeded: 0 } });
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "c3")).toEqual(["bbb", "aaa", "aaa"]);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect((await made.group()).status).toMatchObject({
      state: "Held",
      conditions: [{ reason: "Held", message: expect.stringMatching(/^rollout 2 rejected by .*: INC-1$/) }],
    });
    await revise(made, "ccc");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a catch-up that was paused goes on when the rejection is taken back", async () => {
    const made = await group();
    await made.addCluster("c4", "rest");
    await begin(made);
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c4"]);
    await reject(made, 1);
    await begin(made);
    expect((await made.sync("c4"))?.paused).toBeDefined();
    expect(made.slots()).toEqual([]);
    await unreject(made, 1);
    await playOn(made);
    expect(await made.sync("c4")).toMatchObject({ desired: { rollout: 1 }, observed: { phase: "Ready" } });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("an assignment that no worker has begun is paused, and its slot is free", async () => {
    const made = await group();
    await revise(made, "bbb");
    expect(made.slots()).toHaveLength(2);
    await reject(made, 2);
    await made.plan(undefined, []);
    expect(made.slots()).toEqual([]);
    expect((await made.sync("c1"))?.paused?.reason).toMatch(/^rollout 2 rejected by .*: INC-1$/);
    await playOn(made);
    expect(made.slots()).toEqual([]);
  });

  test("a cluster whose attempt no worker has begun is Rejected, and neither failed nor a reason for an alarm", async () => {
    const made = await group();
    await revise(made, "bbb");
    await reject(made, 2);
    await playOn(made);
    const states = await Promise.all(["c1", "c2", "c3"].map((name) => made.sync(name)));
    expect(states.map((sync) => sync && syncStateOf(sync))).toEqual(["Rejected", "Rejected", "Ready"]);
    const row = await made.group();
    expect(row.status).toMatchObject({
      state: "Held",
      clusters: { selected: 3, ready: 1, waiting: 2, failed: 0, unreachable: 0 },
      conditions: [{ reason: "Held", message: expect.stringMatching(/^rollout 2 rejected by .*: INC-1$/) }],
    });
    expect(withOwner(nothingSurveyed, row)).toMatchObject({ halted: 0, targets: { failed: 0 } });
    await revise(made, "ccc");
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "c3")).toEqual(["ccc", "ccc", "ccc"]);
  });

  test("two rejections end although the planner has seen neither end when the second one is asked for", async () => {
    const made = await group();
    for (const commit of ["bbb", "ccc"]) {
      await revise(made, commit);
      await playOn(made);
    }
    for (const rollout of [2, 3]) await reject(made, rollout);
    await made.plan(undefined, []);
    for (const rollout of [2, 3]) await unreject(made, rollout);
    await playOn(made);
    expect(made.rolloutState().rejected).toBeUndefined();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  });

  test("the same files under another commit are rejected as well, by name", async () => {
    const made = await groupWithLike();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(made.rolloutState().rejected).toMatchObject([{ rollout: 2 }, { rollout: 4, like: 2 }]);
    expect((await made.group()).status).toMatchObject({
      state: "Held",
      conditions: [
        { message: expect.stringMatching(/^rollout 4 has the plan of rollout 2, which was rejected by .*: INC-1$/) },
      ],
    });
    expect(made.targets(4)).toEqual([]);
  });

  test("a rollout with the plan of another rejected one stays rejected by its own act when the other one is admitted", async () => {
    const made = await groupWithLike();
    await reject(made, 4);
    await playOn(made);
    await unreject(made, 2);
    await playOn(made);
    expect(made.rolloutState().rejected?.map(({ rollout, like }) => ({ rollout, like }))).toEqual([{ rollout: 4 }]);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(made.targets(4)).toEqual([]);
  });

  test("a stage that has it gives it to no cluster that joins, and the next stage never takes it", async () => {
    const made = await group();
    await revise(made, "bbb");
    for (const cluster of ["c1", "c2"]) await made.finish(cluster);
    await made.plan();
    await made.renderAll();
    await reject(made, 2);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await made.addCluster("c4", "canary");
    await playOn(made);
    expect(await revisions(made, "c1", "c3", "c4")).toEqual(["bbb", expect.anything(), "aaa"]);
    expect((await made.sync("c3"))?.observed?.applied?.revision).toContain("aaa");
  });

  test("a cluster that has it and answers again keeps it", async () => {
    const made = await group();
    await revise(made, "bbb");
    await playOn(made);
    await reject(made, 2);
    await playOn(made);
    const before = (await made.sync("c1"))?.desired;
    await made.observe("c1", "Unreachable");
    await made.plan();
    await made.observe("c1", "Reachable");
    await playOn(made);
    expect((await made.sync("c1"))?.desired).toEqual(before);
    expect(made.rolloutState().catchUps.waiting).toBe(0);
  });

  test("after an unreject it goes on where it was", async () => {
    const made = await group();
    await revise(made, "bbb");
    await reject(made, 2);
    await playOn(made);
    await unreject(made, 2);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect(made.rolloutState().rejected).toBeUndefined();
  });

  test("after an unreject a cluster that joined meanwhile, and has something older, gets its stage's rollout", async () => {
    const made = await group();
    await revise(made, "bbb");
    await playOn(made);
    await reject(made, 2);
    await playOn(made);
    for (const [cluster, stage] of Object.entries({ c4: "canary", c5: "rest" })) await made.addCluster(cluster, stage);
    await playOn(made);
    expect(await revisions(made, "c1", "c4", "c5")).toEqual(["bbb", "aaa", "aaa"]);
    const before = (await made.sync("c1"))?.desired;
    await unreject(made, 2);
    await playOn(made);
    expect(await revisions(made, "c1", "c4", "c5")).toEqual(["bbb", "bbb", "bbb"]);
    expect((await made.sync("c1"))?.desired).toEqual(before);
    expect(made.rolloutState()).toMatchObject({ jobs: [], catchUps: { waiting: 0 } });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a suspended group takes a rejection as well", async () => {
    const made = await group();
    await revise(made, "bbb");
    await ask(made, "suspend", {});
    await reject(made, 2);
    await made.plan();
    expect(made.rolloutState().rejected).toMatchObject([{ rollout: 2 }]);
    await ask(made, "resume", {});
    await playOn(made);
    expect(await revisions(made, "c3")).toEqual(["aaa"]);
  });

  test("functions of the version before leave the group alone", async () => {
    const made = await group();
    await reject(made, 1);
    expect((await made.group()).schema).toBe(newestRowSchema);
  });

  test("a group whose only rollout is rejected gives a cluster that joins nothing, until a newer one", async () => {
    const made = await group();
    await reject(made, 1);
    await begin(made);
    await made.addCluster("c4", "rest");
    await playOn(made);
    expect(await made.sync("c4")).toBeUndefined();
    await revise(made, "bbb");
    await playOn(made);
    expect(await revisions(made, "c1", "c3", "c4")).toEqual(["bbb", "bbb", "bbb"]);
  });
});
