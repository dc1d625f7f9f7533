/** The metric DueLag in a fleet in which every function does its part: it must raise no alarm. */
import { expect, test } from "vitest";
import { claimDue } from "#functions/tick/claim-due.ts";
import { dueAttributes, timerAttributes } from "#shared/fleet/rows/due.ts";
import type { Metrics, Table } from "#shared/ports.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { ana, begin, names, worldOf } from "#test/support/planner-story.ts";
import { type PlannerWorld, silentLog } from "#test/support/planner-world.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** One tick a minute; the receiver of a message does its work. @returns the metric of each tick. */
async function ticks(
  count: number,
  world: { readonly table: Table; now(): Date; advance(): Promise<void>; receive(): Promise<void> },
): Promise<readonly number[]> {
  const lags: number[] = [];
  const metrics: Metrics = { count: () => {}, seconds: (_name, value) => lags.push(value) };
  for (let minute = 0; minute < count; minute++) {
    await world.advance();
    const sender = new MemorySender();
    await claimDue({ table: world.table, sender, clock: { now: world.now }, log: silentLog, metrics });
    if (sender.take().length > 0) await world.receive();
  }
  return lags;
}

/** The planner is real; workers and renderers have checked their rows before each tick, and have nothing to report. */
function planned(world: PlannerWorld) {
  return {
    table: world.table,
    now: () => world.now,
    async advance() {
      world.advanceClock(60);
      const theirs = world.table.all().filter(({ type }) => type === "SyncOnCluster" || type === "Rendering");
      for (const row of theirs)
        await world.table.update({ update: { pk: row.pk, sk: row.sk }, remove: timerAttributes });
    },
    receive: () => world.plan(),
  };
}

test("a rollout whose clusters take an hour within their deadline causes no lag", async () => {
  const world = await worldOf(names(3), { progressDeadline: "2h" });
  await begin(world);
  for (const { cluster } of world.slots()) await world.finish(cluster, "Verifying");
  await world.plan();
  expect(Math.max(...(await ticks(60, planned(world))))).toBeLessThan(300);
});

test("a suspended rollout causes no lag", async () => {
  const world = await worldOf(names(3), { progressDeadline: "2h" });
  await begin(world);
  await world.operate({ suspended: ana(world.now) });
  await world.plan();
  expect(Math.max(...(await ticks(60, planned(world))))).toBeLessThan(300);
});

test("an assignment that waits while its group is suspended causes no lag", async () => {
  const connect = () => Promise.reject(new Error("nobody is to ask the cluster"));
  const world = await new WorkerWorld({ connect, distrust() {} }).begin();
  await world.assign("web", []);
  await world.setOwner("web", { operations: { suspended: { ...ana(world.clock.now()), number: 1 } } });
  const row = await world.sync("web");
  if (row === undefined) throw new Error("it was assigned");
  await world.table.write([{ put: { ...row, ...dueAttributes(row, row.desired.assignedAt) } }]);
  const lags = await ticks(60, {
    table: world.table,
    now: () => world.clock.now(),
    async advance() {
      world.aheadMs += 60_000;
    },
    receive: async () => void (await world.work()),
  });
  expect(await world.phase("web")).toBeUndefined();
  expect(Math.max(...lags)).toBeLessThan(300);
});
