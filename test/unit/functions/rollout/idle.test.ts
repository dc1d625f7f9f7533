import { expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { ana, begin, lease, names, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const backoffSecondsAfter = (made: PlannerWorld) =>
  (new Date(dueAtOf(made.rolloutState().dueKey ?? "")).getTime() - made.now.getTime()) / 1000;

test("a due time of the rollout state that is later than a deadline, or was lost, is restored", async () => {
  const made = await worldOf(["a"], { progressDeadline: "20s" });
  await begin(made);
  await made.observe("a", "Applying");
  await made.plan();
  const key = keys.rolloutState(owner);
  await made.table.update({ update: key, set: { dueKey: "2026-11-21T09:00:00.000Z#later" } });
  await made.plan();
  expect(made.rolloutState().dueKey).toMatch(/^2026-11-21T08:00:20.000Z#/);
  await made.table.update({ update: key, remove: ["dueKey", "dueShard"] });
  await made.plan();
  expect(made.rolloutState().dueKey).toMatch(/^2026-11-21T08:00:20.000Z#/);
});

test.each([
  ["a check of all clusters", undefined],
  ["a report of the cluster's worker", ["a"]],
])("the planner is due when the lease of a cluster that gave up its slot ends, after %s", async (_what, named) => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1, maxFailures: 1 });
  await begin(made);
  await made.observe("a", "Failed");
  await lease(made, "a", { fence: 2, seconds: 20 });
  await made.plan(made.table, named);
  expect(backoffSecondsAfter(made)).toBe(20);
  await lease(made, "a", { fence: 2, seconds: 25 });
  made.advanceClock(20);
  const key = keys.rolloutState(owner);
  await made.table.update({ update: key, set: { dueKey: "2026-11-21T09:00:00.000Z#later" } });
  await made.plan();
  expect(backoffSecondsAfter(made)).toBe(5);
  made.advanceClock(6);
  await made.plan();
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b"]);
});

test("a group whose clusters change, or have just changed, is checked again within about a minute", async () => {
  const made = await worldOf(["a"], {});
  await made.rollOut();
  await made.observe("a", "Verifying", { reason: "NotReady" });
  await made.plan();
  expect(backoffSecondsAfter(made)).toBeLessThan(70);
  expect((await made.group()).status.clusters).toMatchObject({ changing: 1, ready: 0 });
  await made.observe("a", "Ready");
  await made.plan();
  expect(backoffSecondsAfter(made)).toBeLessThan(70);
  made.advanceClock(60);
  await made.plan();
  expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
  expect((await made.group()).status.clusters).toMatchObject({ changing: 0, ready: 1 });
});

test("an idle check costs the same however many clusters there are, and reads no list of them", async () => {
  const costs: number[] = [];
  for (const count of [5, 120]) {
    const made = await worldOf(names(count), { maxConcurrent: "100%" });
    await made.rollOut();
    made.advanceClock(700);
    await made.plan();
    let calls = 0;
    const { table } = made;
    await made.plan({
      get: (key) => table.get(key),
      getMany: (desired, reading) => {
        calls += desired.length;
        return table.getMany(desired, reading);
      },
      query: (query) => {
        calls++;
        expect(query.pk).not.toBe("FLEET");
        return table.query(query);
      },
      queryIndex: (query) => {
        calls++;
        return table.queryIndex(query);
      },
      write: (writes) => table.write(writes),
      update: (write) => table.update(write),
    });
    costs.push(calls);
  }
  expect(costs[1]).toBe(costs[0]);
});

test("a row whose members DynamoDB returns in another order counts as unchanged", async () => {
  const made = await worldOf(["a"], {});
  await made.rollOut();
  const row = await made.sync("a");
  if (row === undefined) throw new Error("nothing was assigned");
  const apply = Object.fromEntries(Object.entries(row.desired.apply).reverse()) as SyncRow["desired"]["apply"];
  const turned: SyncRow = { ...row, desired: { ...row.desired, apply } };
  await made.table.write([{ put: turned }]);
  const group = await made.group();
  const status = Object.fromEntries(Object.entries(group.status).reverse()) as typeof group.status;
  await made.table.write([{ put: { ...group, status } as typeof group }]);
  await made.plan();
  expect((await made.group()).version).toBe(group.version);
  await made.setGroup({}, [...web, { name: "more", source: "app" }]);
  await begin(made);
  expect(made.slots()[0]?.attempts).toEqual({ "web.more": 1 });
});

test("a check in which the last stage passes also starts the rollout that was waiting", async () => {
  const made = await worldOf({ a: "canary", b: "rest" }, rings);
  await begin(made);
  await made.finish("a");
  await begin(made);
  await made.setSource("bbb");
  await made.finish("b");
  await made.plan();
  expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
});

test("a suspended group takes no slot, and a rollout that waited before it gives way to a newer one after the resume", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
  await made.rollOut();
  await made.setSource("bbb");
  await made.plan();
  await made.operate({ suspended: ana(made.now) });
  await made.renderAll();
  await revise(made, "ccc");
  expect(made.rollouts()).toHaveLength(2);
  expect(made.slots()).toEqual([]);
  made.advanceClock(10);
  await made.operate({ resumed: ana(made.now) });
  await made.rollOut();
  expect((await made.sync("a"))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:ccc" });
});

test("clusters that failed in two stages that ended at once are counted, although the index is behind", async () => {
  const made = await worldOf(
    { c1: "canary", c2: "canary", r1: "rest", r2: "rest" },
    { ...rings, maxConcurrent: 4, maxFailures: 1 },
  );
  await begin(made);
  await made.finish("c1", "Failed");
  await made.finish("c2");
  await made.plan();
  await made.finish("r1", "Failed");
  await made.finish("r2");
  await made.plan(lagging(made.table, new MemoryTable()));
  expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  expect((await made.group()).status.clusters).toMatchObject({ selected: 4, ready: 2, failed: 2 });
});
