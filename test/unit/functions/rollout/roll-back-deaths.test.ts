/** Rollbacks end in the same way wherever the planner dies, and whatever is requested or reported twice. */
import { expect, test } from "vitest";
import { playDeaths, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

async function rollBack(made: PlannerWorld, body: object = {}) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/rollback`;
  return api.call("POST", path, { reason: "INC-1", ...body });
}

async function group(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  await revise(made, "bbb");
  await playOn(made);
  expect(await rollBack(made)).toMatchObject({ status: 200 });
  return made;
}

/** There is one rollback, every cluster has the older rollout, and the bad one is rejected. */
async function expectBack(made: PlannerWorld, where: string): Promise<void> {
  const syncs = await Promise.all(["c1", "c2", "r1"].map((cluster) => made.sync(cluster)));
  expect(
    syncs.map((sync) => [sync?.desired.rollout, sync?.desired.revision, sync?.observed?.phase]),
    where,
  ).toEqual(syncs.map(() => [3, "main@sha1:aaa", "Ready"]));
  expect(made.stages(), where).toEqual({ canary: "3", rest: "3" });
  const { last, rejected } = made.rolloutState();
  expect({ last, rejected: rejected?.map(({ rollout }) => rollout) }, where).toEqual({ last: 3, rejected: [2] });
}

test.each(["before", "after"] as const)("the planner dies %s any call while it starts a rollback", async (when) => {
  expect(await playDeaths(when, group, expectBack)).toBeGreaterThan(10);
});

test.each(["before", "after"] as const)("the planner dies %s any call while a rollback ends", async (when) => {
  const begun = async () => {
    const made = await group();
    await made.plan();
    for (const { cluster } of made.slots()) await made.finish(cluster);
    return made;
  };
  expect(await playDeaths(when, begun, expectBack)).toBeGreaterThan(10);
});

test("a rollback that is requested twice, and messages that come twice or not at all, make one rollback", async () => {
  const made = await group();
  expect(await rollBack(made)).toMatchObject({ status: 409, body: { code: "NothingToRollBack" } });
  await made.plan();
  await made.plan();
  expect(await rollBack(made)).toMatchObject({ status: 409, body: { code: "NothingToRollBack" } });
  expect(await rollBack(made, { to: 1 })).toMatchObject({ status: 409 });
  for (const { cluster } of made.slots()) {
    await made.finish(cluster);
    await made.finish(cluster);
  }
  // No message tells the planner of what its next tick finds.
  await made.plan(undefined, []);
  await playOn(made);
  await expectBack(made, "requested twice");
});
