/** Holds: no stage takes a newer rollout, and each desired revision still gets its number. */
import { describe, expect, test } from "vitest";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { type OperationsInput, owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object): Promise<void> {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  expect(await api.call("POST", `${path}/${verb}`, body)).toMatchObject({ status: 200 });
}

const hold = (made: PlannerWorld, more: object = {}) => ask(made, "hold", { reason: "INC-1", ...more });
const release = (made: PlannerWorld, more: object = {}) => ask(made, "release", more);

/** A group whose two stages have rollout 1, and that is held after that. */
async function heldGroup(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5 });
  await made.rollOut();
  await hold(made);
  await made.plan();
  return made;
}

/** The revisions that workers of the clusters were assigned last. */
async function assigned(made: PlannerWorld): Promise<readonly (string | undefined)[]> {
  const syncs = await Promise.all(["c1", "c2"].map((cluster) => made.sync(cluster)));
  return syncs.map((sync) => sync?.desired.revision);
}

describe("a hold", () => {
  test("a held group assigns nothing newer, gives each revision a number, and names what waits", async () => {
    const made = await heldGroup();
    expect((await made.group()).status.state).toBe("Complete");
    const before = await assigned(made);
    for (const commit of ["bbb", "ccc"]) await revise(made, commit);
    expect(await assigned(made)).toEqual(before);
    expect(made.rolloutState().ledger.map(({ number, revision }) => [number, revision])).toEqual([
      [3, expect.stringContaining("ccc")],
      [2, expect.stringContaining("bbb")],
      [1, expect.stringContaining("aaa")],
    ]);
    const { state, conditions } = (await made.group()).status;
    expect(state).toBe("Held");
    expect(conditions[0]?.message).toMatch(/^held by .*: INC-1; rollouts 3, 2 wait$/);
  });

  test("after a release the newest rollout goes through all stages, and the skipped one never does", async () => {
    const made = await heldGroup();
    for (const commit of ["bbb", "ccc"]) await revise(made, commit);
    await release(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(made.targets(2)).toEqual([]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a rollout that is released alone goes through all stages, and the newer one waits", async () => {
    const made = await heldGroup();
    for (const commit of ["bbb", "ccc"]) await revise(made, commit);
    await release(made, { to: 2 });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect((await made.group()).status.conditions[0]?.message).toMatch(/; rollout 3 waits$/);
    await revise(made, "ddd");
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("a stage run in progress goes on, and the next stage does not take its rollout", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5 });
    await made.rollOut();
    await revise(made, "bbb");
    await hold(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1" });
    expect((await made.group()).status.state).toBe("Held");
    await release(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("the first rollout of a new group waits as well", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, rings);
    await hold(made);
    await begin(made);
    expect(made.slots()).toEqual([]);
    expect((await made.group()).status.state).toBe("Held");
  });

  test("a cluster that joins catches up, and a deletion goes on", async () => {
    const made = await heldGroup();
    await revise(made, "bbb");
    await made.addCluster("c3", "rest");
    await playOn(made);
    expect((await made.sync("c3"))?.desired.revision).toContain("aaa");
    await made.operate({
      ...(await made.group()).operations,
      deletion: { ...ana(made.now), cascade: "delete" },
    } as OperationsInput);
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("a hold with an end ends by itself", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5 });
    await made.rollOut();
    await hold(made, { until: new Date(made.now.getTime() + 60_000).toISOString() });
    await revise(made, "bbb");
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    const { dueKey = "" } = made.rolloutState();
    expect(dueKey.slice(0, 24) <= new Date(made.now.getTime() + 60_000).toISOString(), dueKey).toBe(true);
    made.advanceClock(61);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("functions of the version before leave a held group alone", async () => {
    const made = await heldGroup();
    expect((await made.group()).schema).toBe(newestRowSchema);
    await release(made);
    expect((await made.group()).schema).toBe(rowSchema);
  });
});
