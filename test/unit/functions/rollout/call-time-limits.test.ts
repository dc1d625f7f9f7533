/** A call whose time ends in the middle of a check: its findings and its requests are not lost. */
import { expect, test } from "vitest";
import { reportOf } from "#functions/rollout/call/plan-batch.ts";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { RolloutMessage } from "#shared/messages.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { begin, names, worldOf } from "#test/support/planner-story.ts";
import { owner, PlannerWorld, silentLog } from "#test/support/planner-world.ts";

/**
 * @param over - the call to the table with which the time ends. @returns the messages for the next call, where this one
 *   did not finish.
 */
async function call(made: PlannerWorld, messages: readonly RolloutMessage[], over = 0, seconds = 60) {
  made.sender.take();
  const midst = [{ at: over, act: async () => made.advanceClock(61) }];
  const { table } = new DisturbedPorts({ table: made.table, sender: made.sender }, { midst });
  const until = new Date(made.now.getTime() + seconds * 1000);
  const ports = { table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog };
  const clock = { now: () => made.now };
  await planOwner(owner, { until, ...reportOf(messages) }, { ...ports, clock, installation: "test" });
  return made.sender.take().flatMap((message) => (message.to === "rollout" ? message : []));
}

const everybody: readonly RolloutMessage[] = [{ to: "rollout", owner }];

test("a check that finds expired deadlines starts the newer rollout, wherever the first call's time ends", async () => {
  let calls = 0;
  for (let at = 1; calls === 0 || at <= calls; at++) {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "5m" });
    await begin(made);
    // No worker begins.
    made.advanceClock(301);
    await made.setSource("bbb");
    const left = await call(made, everybody, at);
    if (left.length === 0) calls = at;
    if (left.length > 0) expect(await call(made, left), `goes on after call ${at}`).toEqual([]);
    expect(made.stages(), `over at call ${at}`).toEqual({ all: "- (2)" });
  }
  expect(calls).toBeGreaterThan(5);
});

test("clusters that may be reachable again, and need no write, are checked once each, however many they are", async () => {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 1000 }), blobs: new MemoryBlobStore() });
  for (const name of ["a", "zz"]) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({});
  await made.rollOut();
  await made.setSource("bbb");
  const row = (await made.sync("a")) as SyncRow;
  // The index lists these clusters as reachable again, and is behind.
  const puts = names(1300).map((cluster) => ({
    put: {
      ...row,
      ...keys.sync(cluster, "shop", "web.app"),
      cluster,
      statePk: stateIndex.pk(owner),
      stateSk: stateIndex.sk("Reachable", { cluster, name: row.name }),
    },
  }));
  for (const put of puts) await made.table.write([put]);
  let messages = everybody;
  // Each call has time for a few pages of twenty.
  for (let count = 0; count < 70 && messages[0]?.after !== "c999"; count++) {
    expect(messages).toHaveLength(1);
    messages = await call(made, messages, 10);
  }
  expect(messages).toEqual([{ to: "rollout", owner, after: "c999" }]);
  expect(await call(made, messages)).toEqual([]);
  expect(made.stages()).toEqual({ all: "1 (2)" });
});

test("a cluster that a message names is checked, although a check of all clusters has already gone past it", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: "100%", maxUnreachable: 2 });
  await begin(made);
  await made.finish("a", "Unreachable");
  await made.finish("b");
  await made.plan();
  expect(made.stages()).toEqual({ all: "1" });
  await made.observe("a", "Reachable");
  const later: RolloutMessage = { to: "rollout", owner, after: "b" };
  expect(await call(made, [later])).toEqual([]);
  expect(made.slots()).toEqual([]);
  const before: readonly RolloutMessage[] = [later, { to: "rollout", owner, clusters: ["a"] }];
  const left = await call(made, before, 0, 0);
  expect(left).toEqual(before);
  expect(await call(made, left)).toEqual([]);
  expect(made.slots()).toMatchObject([{ cluster: "a" }]);
});

test("a call that cannot check all named clusters passes the others on, in as many messages as they need", async () => {
  const made = await worldOf(["a"], {});
  await made.rollOut();
  const clusters = [...names(1300)];
  const left = await call(made, [{ to: "rollout", owner, clusters }], 1);
  expect(left.map((one) => one.clusters?.length)).toEqual([1000, 280]);
  // A page of them was asked.
  expect(left.flatMap((one) => one.clusters ?? [])).toEqual(clusters.toSorted().slice(20));
});
