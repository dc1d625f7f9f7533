import { describe, expect, test } from "vitest";
import { planBatch } from "#functions/rollout/call/plan-batch.ts";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { RolloutMessage } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";
import { begin, names, ownPaths, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";

async function planned(
  made: PlannerWorld,
  messages: readonly Omit<RolloutMessage, "to" | "owner">[],
  table = made.table as Table,
) {
  const ports = {
    ...{ table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog, installation: "test" },
    clock: { now: () => made.now },
  };
  const other = { to: "rollout" as const, owner: { ...owner, name: "other" }, clusters: [] };
  const [first, ...rest] = messages.map((message) => ({ to: "rollout" as const, owner, ...message }));
  return planBatch(first === undefined ? [] : [first, other, ...rest], 60_000, ports);
}

describe("messages of one group in one batch", () => {
  async function finished(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3 });
    await begin(made);
    for (const name of ["a", "b", "c"]) await made.finish(name);
    return made;
  }

  test("messages that name clusters become one call that checks all clusters that any of them names", async () => {
    const made = await finished();
    expect(await planned(made, [{ clusters: ["a"] }, { clusters: [] }, { clusters: ["b"] }])).toEqual([]);
    expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded", c: "Assigned" });
  });

  test("a message that names no cluster makes the call check every cluster", async () => {
    const made = await finished();
    await planned(made, [{ clusters: ["a"] }, {}]);
    expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded", c: "Succeeded" });
  });

  test.each([
    ["a renderer", [{ clusters: ["b"] }, { clusters: [] }], 1],
    ["a worker", [{ clusters: ["b"] }], 0],
  ])(
    "the call looks for finished renderings only with a message of a renderer: one from %s",
    async (_whose, messages, assigned) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures: 1 }, ownPaths);
      await made.plan();
      const retryAt = "2026-11-21T12:00:00.000Z";
      await made.renderAll({ message: "tried 5 times", retryAt }, ({ path }) => path === "clusters/a");
      await begin(made);
      await made.renderRested();
      await planned(made, messages);
      expect((await made.sync("a"))?.desired.attempt ?? 0).toBe(assigned);
    },
  );

  test.each([
    ["after it has checked some of its clusters", 2, 5],
    ["before it has read anything", 0, 30],
  ])("a call whose time ends %s sends the renderer's message again", async (_when, asked, clusters) => {
    const members = names(30);
    const made = await worldOf(members, { maxConcurrent: "100%" });
    await begin(made);
    for (const name of members) await made.finish(name);
    made.sender.take();
    let left = asked;
    const until = new Date(made.now.getTime() + 60_000);
    const clock = { now: () => (left-- > 0 ? made.now : until) };
    const ports = { table: made.table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog };
    const call = { until, clusters: new Set(members), rendered: true };
    await planOwner(owner, call, { ...ports, clock, installation: "test" });
    const sent = made.sender.take().filter(({ to }) => to === "rollout");
    expect(sent).toMatchObject([{ clusters: { length: clusters } }, { clusters: { length: 0 } }]);
  });

  test("all messages of a group fail together, and no message of another group fails", async () => {
    const made = await finished();
    const isIts = ({ sk, pk }: { readonly pk: string; readonly sk: string }) =>
      keyText({ pk, sk }) === keyText(keys.rolloutState(owner));
    const table: Table = {
      get: (key) => made.table.get(key),
      update: (write) => made.table.update(write),
      async getMany(desired, reading) {
        if (desired.some(isIts)) throw new Error("the table is away");
        return made.table.getMany(desired, reading);
      },
      query: (query) => made.table.query(query),
      queryIndex: (query) => made.table.queryIndex(query),
      write: (writes) => made.table.write(writes),
    };
    const failures = await planned(made, [{ clusters: ["a"] }, { clusters: ["b"] }], table);
    expect(failures).toEqual([0, 2].map((index) => ({ index, error: new Error("the table is away") })));
  });
});

test("groups that use all their time leave as much time to the groups after them", async () => {
  const made = await worldOf(["a"], {});
  const row = await made.group();
  const owners = names(10, "g").map((name): Owner => ({ namespace: "shop", kind: "SyncGroup", name }));
  for (const { name } of owners) {
    const group: SyncGroupRow = { ...row, ...keys.object("shop", "SyncGroup", name), name, uid: name };
    await made.table.write([{ put: group }]);
  }
  const read = new Set<string>();
  // Every read takes time, and no write succeeds.
  const table: Table = {
    get: (key) => made.table.get(key),
    update: (write) => made.table.update(write),
    async getMany(desired, reading) {
      made.advanceClock(0.2);
      for (const key of desired) read.add(keyText(key));
      return made.table.getMany(desired, reading);
    },
    query: (query) => made.table.query(query),
    queryIndex: (query) => made.table.queryIndex(query),
    async write() {
      throw new ConflictError("somebody else was first", { failed: [0] });
    },
  };
  const ports = {
    ...{ table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog, installation: "test" },
    clock: { now: () => made.now },
  };
  const messages = owners.map((owner) => ({ to: "rollout" as const, owner, clusters: [] }));
  expect(await planBatch(messages, 10_000, ports)).toEqual([]);
  expect(owners.filter((owner) => !read.has(keyText(keys.rolloutState(owner))))).toEqual([]);
  expect(made.sender.take()).toHaveLength(10);
});

test("groups after slow ones end with their batch all the same", async () => {
  const made = await worldOf(["a"], {});
  const row = await made.group();
  const owners = names(6, "g").map((name): Owner => ({ namespace: "shop", kind: "SyncGroup", name }));
  for (const { name } of owners) {
    const group: SyncGroupRow = { ...row, ...keys.object("shop", "SyncGroup", name), name, uid: name };
    await made.table.write([{ put: group }]);
  }
  const begun = made.now.getTime();
  let reads = 0;
  const table: Table = {
    get: (key) => made.table.get(key),
    update: (write) => made.table.update(write),
    async getMany(desired, reading) {
      // All of the first groups wait for one answer.
      made.advanceClock(++reads === 5 ? 9 : 0.2);
      return made.table.getMany(desired, reading);
    },
    query: (query) => made.table.query(query),
    queryIndex: (query) => made.table.queryIndex(query),
    async write() {
      throw new ConflictError("somebody else was first", { failed: [0] });
    },
  };
  const ports = {
    ...{ table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog, installation: "test" },
    clock: { now: () => made.now },
  };
  const messages = owners.map((owner) => ({ to: "rollout" as const, owner, clusters: [] }));
  expect(await planBatch(messages, 10_000, ports)).toEqual([]);
  // The batch takes no longer than the steps that each group had begun.
  expect(made.now.getTime() - begun).toBeLessThan(12_000);
  expect(made.sender.take()).toHaveLength(6);
});
