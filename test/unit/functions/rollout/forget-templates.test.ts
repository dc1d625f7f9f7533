/** Templates that the newest rollout does not have: the group remembers a template as long as a Sync of it may be left. */
import { expect, test } from "vitest";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { allSay, ana, begin, playOn, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const both = [...web, { name: "data", source: "app" }];
const pace = { maxConcurrent: 4, maxUnreachable: 1 };
const numbers = (made: PlannerWorld) => made.rollouts().map(({ number }) => number);

/** Several checks of an idle group; each of them ends within a bounded number of calls. */
async function checkOften(made: PlannerWorld): Promise<void> {
  for (let check = 0; check < 4; check++) {
    made.advanceClock(700);
    await made.plan(new DisturbedPorts(made, { mostCalls: 300 }).table);
  }
}

/** Makes a row readable for a newer version only, or readable again. A writer of the fleet also changes its version. */
async function setSchema(made: PlannerWorld, key: { readonly pk: string; readonly sk: string }, schema: number) {
  await made.table.write([{ update: key, set: { schema } }]);
  if (key.pk === keys.fleet("b").pk) await made.table.write([fleetVersionUpdate(key.sk)]);
}

test("no further rollout starts for a cluster whose row only a newer version can read", async () => {
  const made = await worldOf(["a", "b"], pace, both);
  await made.rollOut();
  await setSchema(made, keys.fleet("b"), newestRowSchema + 1);
  await made.setGroup(pace, web);
  await playOn(made, 4);
  expect(made.stages()).toEqual({ all: "2" });
  await checkOften(made);
  await playOn(made, 4);
  await checkOften(made);
  expect(numbers(made)).toEqual([1, 2]);
  expect(made.rolloutState().templates).toEqual(["app", "data"]);
  expect(await made.sync("b", "web.data")).toMatchObject({ desired: { action: "apply" } });
  await setSchema(made, keys.fleet("b"), rowSchema);
  await playOn(made, 4);
  expect(await made.sync("b", "web.data")).toBeUndefined();
  await checkOften(made);
  expect(made.rolloutState().templates).toEqual(["app"]);
});

test("no further rollout starts while a rollout is halfway through the stages of a suspended group", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, ...pace }, both);
  await made.rollOut();
  await made.setGroup({ ...rings, ...pace }, web);
  await begin(made);
  await made.operate({ suspended: ana(made.now) });
  await allSay(made, "Ready");
  expect(made.stages()).toEqual({ canary: "2", rest: "1" });
  await checkOften(made);
  await made.operate({ resumed: ana(made.now) });
  await playOn(made, 4);
  expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  expect((await made.sync("c1"))?.desired.rollout).toBe((await made.sync("r1"))?.desired.rollout);
  expect(numbers(made)).toEqual([1, 2]);
});

test("a suspended group skips no rollout for a template that its next rollout removes anyway", async () => {
  const made = await worldOf(["a", "b"], pace, both);
  await made.rollOut();
  await made.setGroup(pace, web);
  await playOn(made, 4);
  // A planner that restored the Sync and died before recording it leaves these rows.
  const app = await made.sync("a");
  if (app === undefined) throw new Error("nothing was assigned");
  const key = keys.sync("a", owner.namespace, "web.data");
  const stateSk = app.stateSk?.replace("web.app", "web.data");
  const put: SyncRow = { ...app, ...key, name: "web.data", version: 1, ...(stateSk && { stateSk }) };
  await made.table.write([{ put }]);
  const { pk, sk } = made.rolloutState();
  await made.table.write([{ update: { pk, sk }, set: { templates: ["app", "data"] } }]);
  await made.operate({ suspended: ana(made.now) });
  await made.setSource("bbb");
  await checkOften(made);
  const { inputsVersion, skipped } = made.rolloutState();
  expect(skipped).toBeUndefined();
  await checkOften(made);
  expect(made.rolloutState()).toMatchObject({ inputsVersion, templates: ["app", "data"] });
  await made.operate({ resumed: ana(made.now) });
  await playOn(made, 6);
  expect(made.stages()).toEqual({ all: "3" });
  expect(await made.sync("a", "web.data")).toBeUndefined();
});

test("a template stays known for a Sync that only a newer version can read, and its cluster loses the Sync when it joins", async () => {
  const made = await worldOf(["a"], pace, both);
  await made.rollOut();
  const row = await made.sync("a", "web.data");
  if (row === undefined) throw new Error("nothing was assigned");
  const key = keys.sync("z", owner.namespace, "web.data");
  // A newer version wrote this row before the installation went back to this version.
  const stateSk = row.stateSk?.replace("#a#", "#z#");
  const stray = { ...row, ...key, cluster: "z", version: 1, schema: newestRowSchema + 1, ...(stateSk && { stateSk }) };
  await made.table.write([{ put: stray }]);
  await made.setGroup(pace, web);
  await playOn(made, 4);
  await checkOften(made);
  expect(made.rolloutState().templates).toEqual(["app", "data"]);
  await setSchema(made, key, rowSchema);
  await made.addCluster("z", "all");
  await playOn(made, 4);
  expect(await made.sync("z")).toMatchObject({ observed: { phase: "Ready" } });
  expect(await made.sync("z", "web.data")).toBeUndefined();
});
