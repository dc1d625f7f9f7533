/** `rollout skip`: targets are taken out of a stage run, whose size and budgets stay as they are. */
import { describe, expect, test } from "vitest";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, begin, lease, names, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;
const strict = { maxConcurrent: 5, maxFailures: 0 };

async function call(made: PlannerWorld, method: string, to: string, body?: object) {
  const api = apiFixture(made.table, made.table, made.blobs);
  api.setNow(made.now.toISOString());
  return api.call(method, to, body);
}

async function ask(made: PlannerWorld, verb: string, body: object): Promise<void> {
  expect(await call(made, "POST", `${path}/${verb}`, { reason: "INC-1", ...body })).toMatchObject({ status: 200 });
  await begin(made);
}

const skip = (made: PlannerWorld, body: object) => ask(made, "skip", body);
const retry = (made: PlannerWorld, body: object) => ask(made, "retry", body);
const changing = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);
const revisionOf = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster))?.desired.revision;
const reasonOf = (made: PlannerWorld, cluster: string) =>
  made.targets().find((target) => target.cluster === cluster)?.reason;

/** A group whose rollout 2 is in progress in the first stage. */
async function updating(
  clusters: readonly string[] | Readonly<Record<string, string>>,
  pace: Partial<RolloutStrategy> = {},
): Promise<PlannerWorld> {
  const made = await worldOf(clusters, { ...strict, ...pace } as Parameters<typeof worldOf>[1]);
  await playOn(made);
  await revise(made, "bbb");
  return made;
}

describe("a skip", () => {
  test("a halted stage run goes on without the failed cluster that it names", async () => {
    const made = await updating({ c1: "canary", c2: "canary", c3: "rest" }, rings);
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await begin(made);
    expect(made.stageRun("canary").phase).toBe("Halted");
    await skip(made, { cluster: "c1" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect(made.states()).toMatchObject({ c1: "Skipped", c2: "Succeeded", c3: "Succeeded" });
    expect(reasonOf(made, "c1")).toMatch(/^skipped by .*: INC-1; it was Failed: /);
    expect(made.stageRun("canary")).toMatchObject({
      size: 2,
      takenOut: { count: 1, first: [{ cluster: "c1" }] },
      schema: newestRowSchema,
    });
  });

  test("the budgets are of all targets that the stage run changes, skipped or not", async () => {
    const made = await updating(["c1", "c2", "c3", "c4"], { maxFailures: "25%" });
    await skip(made, { clusters: "ring=all,!none" });
    expect(made.stageRun("all").takenOut?.count).toBe(4);
    const other = await updating(["c1", "c2", "c3", "c4"], { maxFailures: "25%" });
    await skip(other, { cluster: "c1" });
    await other.finish("c2", "Failed");
    await other.finish("c3");
    await other.finish("c4");
    await begin(other);
    expect(other.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Failed: 1, Skipped: 1, Succeeded: 2 } });
  });

  test("a stage run whose targets are all skipped has verified nothing, and gives nothing to the next stage", async () => {
    const made = await updating({ c1: "canary", c2: "canary", c3: "rest" }, rings);
    await skip(made, { clusters: "ring=canary" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect(made.stageRun("canary")).toMatchObject({
      phase: "NothingVerified",
      message: expect.stringMatching(
        /^nothing verified in stage canary: 2 taken out by people: c1: skipped by .*: INC-1$/,
      ),
    });
  });

  test("a cluster that waits gets no turn, also while a freeze holds it back", async () => {
    const made = await worldOf(["c1", "c2", "c3"], strict);
    await playOn(made);
    const frozen = { reason: "INC-1", clusters: "ring=cold" };
    await made.addCluster("c2", "cold");
    expect(await call(made, "POST", "/v1/freezes/inc", frozen)).toMatchObject({ status: 200 });
    await revise(made, "bbb");
    await allSay(made, "Ready");
    expect(made.stageRun("all").holds).toMatchObject([{ cause: "freeze" }]);
    await skip(made, { cluster: "c2" });
    await begin(made);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Skipped: 1, Succeeded: 2 }, holds: [] });
    expect(reasonOf(made, "c2")).toMatch(/^skipped by .*: INC-1$/);
    expect(await revisionOf(made, "c2")).toContain("aaa");
  });

  test("an attempt that no worker has begun is paused, and one that has begun settles and counts as skipped", async () => {
    const made = await updating(["c1", "c2", "c3"]);
    await made.observe("c1", "Applying");
    await lease(made, "c2", { fence: 1, seconds: 30 });
    await skip(made, { cluster: "c1" });
    await skip(made, { cluster: "c2" });
    expect(made.states()).toMatchObject({ c1: "Assigned", c2: "Skipped" });
    expect((await made.sync("c2"))?.paused?.reason).toMatch(/^skipped by .*: INC-1$/);
    expect((await made.sync("c1"))?.paused).toBeUndefined();
    // Its worker may still be writing.
    expect(changing(made)).toEqual(["c1", "c2", "c3"]);
    made.advanceClock(31);
    await made.finish("c1", "Failed");
    await made.finish("c3");
    await begin(made);
    expect(changing(made)).toEqual([]);
    expect(reasonOf(made, "c1")).toMatch(/^skipped by .*: INC-1; its attempt ended Failed: /);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Failed: 0, Skipped: 2, Succeeded: 1 } });
  });

  test("a group with a skipped cluster is held and not complete, until a retry names the cluster", async () => {
    const made = await updating(["c1", "c2"]);
    await skip(made, { cluster: "c1" });
    made.advanceClock(3600);
    await playOn(made);
    expect(made.stages()).toEqual({ all: "2" });
    expect(await revisionOf(made, "c2")).toContain("bbb");
    await retry(made, {});
    expect(changing(made)).toEqual([]);
    await retry(made, { cluster: "c1" });
    expect(changing(made)).toEqual(["c1"]);
    await playOn(made);
    expect(await revisionOf(made, "c1")).toContain("bbb");
    expect(made.stageRun("all").takenOut).toBeUndefined();
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a cluster that was skipped before its turn is held with the old rollout, and named", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { cluster: "c2" });
    await playOn(made);
    expect(made.stages()).toEqual({ all: "2" });
    const { status } = await made.group();
    expect(status.state).toBe("Held");
    expect(status.conditions[0]?.message).toMatch(
      /^c2 has not got rollout 2 \(skipped by .*: INC-1\); to give it to one: starling rollout retry --cluster$/,
    );
  });

  test.each([1, 12])("%i skipped clusters that have nothing count as waiting, and not as ready", async (count) => {
    const skipped = names(count);
    const made = await worldOf([...skipped, "r1"], { maxConcurrent: 1 });
    await begin(made);
    for (const cluster of skipped) await skip(made, { cluster });
    await playOn(made);
    expect(made.stages()).toEqual({ all: "1" });
    expect((await made.group()).status).toMatchObject({
      state: "Held",
      clusters: { selected: count + 1, ready: 1, waiting: count },
    });
  });

  test("a newer rollout gives a skipped cluster another turn", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { cluster: "c2" });
    await playOn(made);
    await revise(made, "ccc");
    await playOn(made);
    expect(await revisionOf(made, "c2")).toContain("ccc");
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a new snapshot of the same rollout does not take a skipped cluster in, also when its stage gets another name", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { cluster: "c2" });
    await ask(made, "refresh", {});
    await made.setGroup({ ...strict, maxConcurrent: 1, stages: [{ name: "every" }] });
    await playOn(made);
    expect(made.stages()).toEqual({ every: "2" });
    expect(made.states()).toMatchObject({ c1: "Succeeded", c2: "Skipped" });
  });

  test("the newest act that names a cluster counts, by name or by label", async () => {
    const made = await updating(["c1", "c2", "c3"], { maxConcurrent: 1 });
    await skip(made, { clusters: "ring=all,!first" });
    await retry(made, { cluster: "c3" });
    // Acts that are over are forgotten with the next one; these are not.
    await ask(made, "hold", {});
    await made.finish("c1");
    await playOn(made);
    expect(made.states()).toMatchObject({ c2: "Skipped", c3: "Succeeded" });
    expect(await revisionOf(made, "c2")).toContain("aaa");
    expect(await revisionOf(made, "c3")).toContain("bbb");
  });

  test("the acts on a stage run are forgotten when it is over", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { cluster: "c2" });
    await retry(made, { cluster: "c2" });
    await playOn(made);
    await ask(made, "hold", {});
    expect((await made.group()).operations.gates).toBeUndefined();
  });

  test("a failed cluster does not leave a stage run whose gates have begun", async () => {
    const made = await worldOf(["c1", "c2"], { ...strict, stages: [{ name: "all", after: [{ bake: "1h" }] }] });
    await playOn(made);
    expect(made.stageRun("all").phase).toBe("Baking");
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("all").phase).toBe("GateFailed");
    const answer = await call(made, "POST", `${path}/skip`, { cluster: "c1", reason: "INC-1" });
    expect(answer.status).toBe(409);
    expect(answer.body.message).toMatch(/^cluster: the gates of rollout 1 in stage all have begun \(GateFailed\)/);
  });

  test("a failed cluster does not leave when the gates begin before the planner sees the skip", async () => {
    const stages = [{ name: "all", after: [{ bake: "1h" }] }];
    const made = await worldOf(["c1", "c2"], { ...strict, maxFailures: 1, stages });
    await begin(made);
    await made.finish("c1", "Failed");
    await begin(made);
    expect(await call(made, "POST", `${path}/skip`, { cluster: "c1", reason: "INC-1" })).toMatchObject({ status: 200 });
    await made.finish("c2");
    await begin(made);
    expect(made.stageRun("all")).toMatchObject({ phase: "Baking", counts: { Failed: 1, Skipped: 0 } });
  });

  test("a retry of every failed cluster leaves skipped ones out", async () => {
    const made = await updating(["c1", "c2", "c3"], { maxFailures: 1 });
    await skip(made, { cluster: "c1" });
    await made.finish("c2", "Failed");
    await made.finish("c3");
    await begin(made);
    expect(made.stageRun("all").phase).toBe("Passed");
    await retry(made, {});
    expect(changing(made)).toEqual(["c2"]);
    expect(made.states()).toMatchObject({ c1: "Skipped" });
  });

  test("the attempt of a skipped cluster is paused, also when the planner is told about another cluster first", async () => {
    const made = await updating(["c1", "c2"]);
    expect(await call(made, "POST", `${path}/skip`, { cluster: "c1", reason: "INC-1" })).toMatchObject({ status: 200 });
    await made.plan(made.table, ["c2"]);
    expect(made.states()).toMatchObject({ c1: "Skipped", c2: "Assigned" });
  });

  test("a cluster that has the rollout stays evidence in a new snapshot, whatever labels a skip names", async () => {
    const made = await updating(["c1", "c2", "c3"], { maxConcurrent: 1 });
    await made.finish("c1");
    await begin(made);
    await made.observe("c2", "Applying");
    await skip(made, { clusters: "ring=all" });
    expect(made.stageRun("all").phase).toBe("Updating");
    await ask(made, "refresh", {});
    await playOn(made);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Skipped: 2 } });
  });

  test("a new snapshot does not take a skipped cluster for one that has left", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { clusters: "ring=all" });
    await playOn(made);
    expect(made.stageRun("all").phase).toBe("NothingVerified");
    await ask(made, "refresh", {});
    await playOn(made);
    expect(made.stageRun("all")).toMatchObject({ phase: "NothingVerified", takenOut: { count: 2 } });
    expect(made.stageRun("all").left).toBeUndefined();
  });

  test("a suspended group skips nothing before the resume", async () => {
    const made = await updating(["c1", "c2"]);
    await made.finish("c1", "Failed");
    await begin(made);
    await ask(made, "suspend", {});
    await skip(made, { cluster: "c1" });
    expect(made.stageRun("all").counts.Failed).toBe(1);
    await ask(made, "resume", {});
    expect(made.stageRun("all").counts).toMatchObject({ Failed: 0, Skipped: 1 });
  });

  test("a skipped cluster that leaves the selection holds the group no longer", async () => {
    const made = await updating(["c1", "c2"], { maxConcurrent: 1 });
    await skip(made, { cluster: "c2" });
    await playOn(made);
    await made.removeCluster("c2");
    await playOn(made);
    expect(made.stageRun("all").takenOut).toBeUndefined();
    expect(made.stageRun("all").counts.Skipped).toBe(1);
  });

  test.each([
    [
      "a cluster that is no target",
      { cluster: "c9" },
      409,
      /^cluster: cluster c9 is not a target of a stage run in progress of SyncGroup shop\/web; in progress: rollout 2 in stage canary$/,
    ],
    ["a cluster whose stage has no stage run", { cluster: "c3" }, 409, /^cluster: cluster c3 is not a target/],
    [
      "a cluster that has the rollout",
      { cluster: "c2" },
      409,
      /^cluster: c2 has rollout 2 already; starling cordon keeps/,
    ],
    [
      "a selector without targets",
      { clusters: "ring=rest" },
      409,
      /^clusters: no cluster that ring=rest selects is a target/,
    ],
    ["a selector that is none", { clusters: "=" }, 400, /clusters/],
    ["neither a name nor a selector", {}, 400, /cluster/],
    ["a name and a selector", { cluster: "c1", clusters: "a=b" }, 400, /cluster/],
    ["no reason", { cluster: "c1", reason: undefined }, 400, /reason/],
  ])("the API refuses %s", async (_what, body, status, message) => {
    const made = await updating({ c1: "canary", c2: "canary", c3: "rest" }, rings);
    await made.finish("c2");
    await begin(made);
    const answer = await call(made, "POST", `${path}/skip`, { reason: "INC-1", ...body });
    expect(answer.body.message).toMatch(message);
    expect(answer.status).toBe(status);
    expect((await made.group()).operations.gates).toBeUndefined();
  });

  test("a second skip of the same cluster changes nothing", async () => {
    const made = await updating(["c1", "c2"]);
    await skip(made, { cluster: "c1" });
    const again = await call(made, "POST", `${path}/skip`, { cluster: "c1", reason: "INC-2" });
    expect(again).toMatchObject({ status: 200, body: { outcome: "unchanged" } });
  });
});
