/** A deletion of a Sync that is stopped in progress, because its template was added again. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const both = [...web, { name: "old", source: "app" }];

async function removing(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 }, both);
  await made.rollOut();
  await made.setGroup({ maxConcurrent: 1 }, web);
  await made.plan();
  return made;
}

test("a deletion in progress stops, and the Sync is restored in the same slot", async () => {
  const made = await removing();
  const before = await made.sync("a", "web.old");
  expect(before?.desired.action).toBe("delete");
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.plan();
  const after = await made.sync("a", "web.old");
  expect(after?.desired).toMatchObject({ action: "apply", attempt: (before?.desired.attempt ?? 0) + 1, rollout: 1 });
  expect(after?.desired.renderDigest).toBe(before?.desired.instead?.renderDigest);
  expect(made.targets(2)).toMatchObject([{ cluster: "a", state: "Superseded" }]);
});

test("several deletions of one cluster stop together", async () => {
  const all = [...both, { name: "older", source: "app" }];
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, all);
  await made.rollOut();
  await made.setGroup({ maxConcurrent: 1 }, web);
  await made.plan();
  await made.setGroup({ maxConcurrent: 1 }, all);
  await made.plan();
  for (const name of ["web.old", "web.older"])
    expect((await made.sync("a", name))?.desired).toMatchObject({ action: "apply", attempt: 3 });
  expect(made.slots()).toMatchObject([{ cluster: "a", attempts: { "web.old": 3, "web.older": 3 } }]);
});

test("a stopped deletion leaves the other Syncs in the slot as they are, and wakes the worker", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, both);
  await made.rollOut();
  await made.setGroup({ maxConcurrent: 1 }, web);
  await revise(made, "bbb");
  const assignedAt = made.now.toISOString();
  expect(made.slots()).toMatchObject([
    { attempts: { "web.app": 2, "web.old": 2 }, order: 0, stageRun: { rollout: 2 } },
  ]);
  made.advanceClock(10);
  made.sender.take();
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.plan();
  const attempts = { "web.app": 2, "web.old": 3 };
  const [slot] = made.slots();
  expect(slot).toMatchObject({ cluster: "a", attempts, since: made.now.toISOString() });
  for (const gone of ["stageRun", "order"]) expect(slot).not.toHaveProperty(gone);
  expect(made.targets(2)).toMatchObject([{ cluster: "a", order: 0, attempts, assignedAt, state: "Superseded" }]);
  expect(made.sender.take()).toContainEqual({ to: "apply", cluster: "a" });
  expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 1 }, stages: [{ changing: 0 }] });
});

test("a deletion in a suspended group stops when the group is resumed", async () => {
  const made = await removing();
  await made.operate({ suspended: ana(made.now) });
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.plan();
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("delete");
  await made.operate({ resumed: ana(made.now) });
  await made.plan();
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("apply");
});

test("a stopped deletion changes nothing on clusters that were not reached", async () => {
  const made = await removing();
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.rollOut();
  for (const name of ["b", "c"])
    expect((await made.sync(name, "web.old"))?.desired, name).toMatchObject({ attempt: 1 });
  expect(made.stages()).toEqual({ all: `${made.rolloutState().last}` });
});

test("a Sync that is already deleted is created again", async () => {
  const made = await removing();
  await made.observe("a", "Gone", { name: "web.old" });
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.rollOut();
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("apply");
  expect((await made.sync("b", "web.old"))?.desired.attempt).toBe(1);
});

test("a deletion does not stop when the group itself is deleted", async () => {
  const made = await removing();
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  await made.plan();
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("delete");
});

/** No worker has begun when the slot's rollout gives way to one without `old`, which is added again meanwhile. */
test("a Sync whose deletion never began stays among the attempts of its slot", async () => {
  const pace = { maxConcurrent: 2, maxFailures: 0 };
  const made = await worldOf(["a", "b"], pace, both);
  await made.rollOut();
  await revise(made, "bbb");
  await made.setGroup(pace, web);
  await made.setSource("ccc");
  await made.finish("b", "Failed");
  await made.plan();
  expect(made.stages()).toEqual({ all: "1 (3)" });
  await made.setGroup(pace, both);
  await begin(made);
  expect(made.slots()).toMatchObject([{ cluster: "a", attempts: { "web.app": 3, "web.old": 2 } }, { cluster: "b" }]);
  await made.observe("a", "Ready");
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "a" }, { cluster: "b" }]);
  await made.observe("a", "Ready", { name: "web.old" });
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "b" }]);
});

test("a Sync of an unreachable cluster waits for a rollout that has its template, and idle checks write nothing", async () => {
  const pace = { maxConcurrent: 2, maxUnreachable: 0 };
  const made = await worldOf(["a", "b"], pace, both);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("a");
  await made.finish("b", "Unreachable");
  await made.plan();
  await made.setGroup(pace, web);
  await made.setSource("ccc");
  await made.plan();
  expect(made.stages()).toEqual({ all: "1 (3)" });
  await made.setGroup(pace, both);
  for (const name of ["web.app", "web.old"]) await made.observe("b", "Reachable", { name });
  await begin(made);
  await made.setSource("ddd");
  for (const name of ["a", "b"]) await made.finish(name);
  await made.plan();
  expect(made.stages()).toEqual({ all: "3 (4)" });
  expect((await made.sync("b", "web.old"))?.observed?.phase).toBe("Reachable");
  const { version } = made.rolloutState();
  await made.plan();
  expect(made.rolloutState().version).toBe(version);
  await playOn(made);
  expect(made.stages()).toEqual({ all: "4" });
  expect(await made.sync("b", "web.old")).toMatchObject({ desired: { rollout: 4 }, observed: { phase: "Ready" } });
});

test("a Sync is restored although only a newer version can read its cluster's row", async () => {
  const made = await removing();
  await made.table.write([{ update: keys.fleet("a"), set: { schema: newestRowSchema + 1 } }]);
  await made.setGroup({ maxConcurrent: 1 }, both);
  await made.plan();
  expect((await made.sync("a", "web.old"))?.desired).toMatchObject({ action: "apply", attempt: 3, rollout: 1 });
});
