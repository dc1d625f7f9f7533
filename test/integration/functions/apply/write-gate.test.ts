import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import { orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, isWrite, watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };
const frozenText = "frozen by ana (INC-4711); starling thaw inc-4711";

describe.each(clusterTargets)("the rows that a worker reads again before it writes on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  interface Watched {
    readonly world: WorkerWorld;
    readonly calls: readonly ClientCall[];
    /** Runs `act` before the first call that fits. */
    readonly at: (fits: (call: ClientCall) => boolean, act: () => Promise<void>) => void;
    /** Runs `act` when a worker opens a client for the n-th time. */
    readonly atConnect: (n: number, act: () => Promise<void>) => void;
  }

  async function begin(): Promise<Watched> {
    const calls: ClientCall[] = [];
    let fits: (call: ClientCall) => boolean = () => false;
    let act = async () => {};
    let connects = 0;
    let connectsLeft = 0;
    const connector: ClusterConnector = {
      async connect() {
        connects += 1;
        if (connects === connectsLeft) await act();
        return watchedClient(cluster.client, async (call) => {
          calls.push(call);
          if (!fits(call)) return;
          fits = () => false;
          await act();
        });
      },
      distrust() {},
    };
    return {
      world: await new WorkerWorld(connector).begin(),
      calls,
      at(matches, action) {
        fits = matches;
        act = action;
      },
      atConnect(n, action) {
        connectsLeft = connects + n;
        act = action;
      },
    };
  }

  const configs = (name: string) => `/api/v1/namespaces/${name}/configmaps`;
  const writes = (name: string) => (call: ClientCall) => isWrite(call) && call.name === name;

  test("a suspend stops an attempt that would start later in the same run", async () => {
    const { world, atConnect } = await begin();
    await world.assign("gate-a", [namespace("gate-a")]);
    await world.assign("gate-b", [namespace("gate-b")]);
    atConnect(1, () => world.suspend("gate-b"));
    await world.work();
    expect(await world.phase("gate-a")).toBe("Ready");
    expect(await world.sync("gate-b")).not.toHaveProperty("observed");
    expect(await cluster.statusOf("/api/v1/namespaces/gate-b")).toBe(404);
    await world.setOwner("gate-b", {});
    await world.work();
    expect(await world.phase("gate-b")).toBe("Ready");
  });

  test("a suspend that comes while objects are applied stops the prune", async () => {
    const { world, at } = await begin();
    const kept = [namespace("gate-prune"), configMap("gate-prune/kept")];
    await world.assign("gate-prune", [...kept, configMap("gate-prune/left")]);
    await world.work();
    await world.assign("gate-prune", kept);
    at(writes("kept"), () => world.suspend("gate-prune"));
    await world.work();
    expect(await cluster.statusOf(`${configs("gate-prune")}/left`)).toBe(200);
    expect((await world.sync("gate-prune"))?.observed).toMatchObject({
      phase: "Applying",
      reason: "Suspended",
      message: "everything was applied; nothing is pruned: suspended by ana",
    });
    world.aheadMs += 60_000;
    await world.work();
    expect(await cluster.statusOf(`${configs("gate-prune")}/left`)).toBe(200);
    await world.setOwner("gate-prune", {});
    await world.work();
    expect(await world.phase("gate-prune")).toBe("Ready");
    expect(await cluster.statusOf(`${configs("gate-prune")}/left`)).toBe(404);
  });

  test("a suspend that comes during a check stops the correction; the drift is reported", async () => {
    const { world, at, calls } = await begin();
    await world.assign("gate-drift", [namespace("gate-drift"), configMap("gate-drift/c")]);
    await world.work();
    await cluster.raw("DELETE", `${configs("gate-drift")}/c`);
    world.aheadMs += 700_000;
    at(
      ({ method }) => method === "list",
      () => world.suspend("gate-drift"),
    );
    const before = calls.filter(isWrite).length;
    await world.work();
    expect(calls.filter(isWrite)).toHaveLength(before);
    expect((await world.sync("gate-drift"))?.observed?.drift).toMatchObject({ objects: 1, corrected: false });
    await world.setOwner("gate-drift", {});
    for (let check = 0; check < 2; check++) {
      world.aheadMs += 60_000;
      await world.work();
    }
    expect(await cluster.statusOf(`${configs("gate-drift")}/c`)).toBe(200);
  });

  test("a suspend that comes while a long set is applied stops the rest of it", async () => {
    const { world, at, calls } = await begin();
    const objects = Array.from({ length: 120 }, (_, index) => configMap(`gate-long/c${index}`));
    await world.assign("gate-long", [namespace("gate-long"), ...objects]);
    at(writes("c10"), async () => {
      await world.suspend("gate-long");
      world.aheadMs += 20_000;
    });
    await world.work();
    // Only the writes that were in flight when the row was read again have been sent.
    expect(calls.filter(({ method }) => method === "apply").length).toBeLessThan(40);
    expect((await world.sync("gate-long"))?.observed).toMatchObject({ phase: "Applying", reason: "Suspended" });
    await world.setOwner("gate-long", {});
    world.aheadMs += 60_000;
    await world.work();
    expect(await world.phase("gate-long")).toBe("Ready");
  });

  test.each([
    [
      "paused",
      "gate-paused",
      {},
      { stateSk: "Failed#c1#gate-paused", observed: { phase: "Failed", reason: "Paused" } },
    ],
    [
      "refused its turn by a freeze",
      "gate-turn",
      { freeze: "inc-1" },
      { stateSk: "Changing#c1#gate-turn", observed: { phase: "Applying", reason: "Waiting" } },
    ],
  ])(
    "an attempt that is %s while a long set is applied writes no more of it",
    async (_what, name, paused, expected) => {
      const { world, at, calls } = await begin();
      const objects = Array.from({ length: 120 }, (_, index) => configMap(`${name}/c${index}`));
      await world.assign(name, [namespace(name), ...objects]);
      at(writes("c10"), async () => {
        await world.pause(name, paused);
        world.aheadMs += 20_000;
      });
      await world.work();
      const written = calls.filter(isWrite).length;
      // Only the writes that were in flight when the row was read again have been sent.
      expect(written).toBeLessThan(40);
      expect(await world.sync(name)).toMatchObject({
        paused: { reason: "DeadlineExceeded" },
        ...expected,
      });
      for (let check = 0; check < 30; check++) {
        world.aheadMs += 60_000;
        await world.work();
      }
      expect(calls.filter(isWrite)).toHaveLength(written);
      await world.assign(name, [namespace(name), ...objects]);
      await world.work();
      expect(await world.phase(name)).toBe("Ready");
    },
  );

  test("a deletion of a long set stops when it is withdrawn", async () => {
    const { world, at, calls } = await begin();
    const name = "gate-withdrawn";
    const objects = Array.from({ length: 120 }, (_, index) => configMap(`${name}/c${index}`));
    await world.assign(name, [namespace(name), ...objects]);
    await world.work();
    await world.assignDelete(name);
    at(writes("c10"), async () => {
      await world.withdrawDeletion(name);
      world.aheadMs += 20_000;
    });
    const before = calls.length;
    await world.work();
    const deletes = () => calls.slice(before).filter(isWrite).length;
    const deleted = deletes();
    // Only the writes that were in flight when the row was read again have been sent.
    expect(deleted).toBeGreaterThan(0);
    expect(deleted).toBeLessThan(60);
    expect((await world.sync(name))?.observed).toMatchObject({ attempt: 2, reason: "Withdrawn" });
    for (let check = 0; check < 30; check++) {
      world.aheadMs += 60_000;
      await world.work();
    }
    expect(deletes()).toBe(deleted);
    await world.assign(name, [namespace(name), ...objects]);
    await world.work();
    expect(await world.phase(name)).toBe("Ready");
    expect(await cluster.statusOf(`${configs(name)}/c10`)).toBe(200);
  });

  test("an attempt that is paused before its first write is not begun", async () => {
    const { world, atConnect, calls } = await begin();
    await world.assign("gate-p-a", [namespace("gate-p-a")]);
    await world.assign("gate-p-b", [namespace("gate-p-b")]);
    atConnect(1, () => world.pause("gate-p-b"));
    await world.work();
    expect(await world.phase("gate-p-a")).toBe("Ready");
    expect(await world.phase("gate-p-b")).toBe("Failed");
    expect(calls.filter(writes("gate-p-b"))).toEqual([]);
  });

  test.each(["Ready", "Verifying"] as const)(
    "the planner's reason stays when a worker reports that the paused attempt is %s",
    async (phase) => {
      const { world, atConnect } = await begin();
      const name = `gate-word-${phase.toLowerCase()}`;
      await world.assign(name, [namespace(name), ...(phase === "Ready" ? [] : [deployment(`${name}/web`)])]);
      atConnect(1, () => world.pause(name));
      await world.work();
      expect(await world.sync(name)).toMatchObject({
        paused: { reason: "DeadlineExceeded" },
        stateSk: `${phase === "Ready" ? "Ready" : "Failed"}#c1#${name}`,
        observed: { attempt: 1, phase },
      });
    },
  );

  test("a newer assignment is started instead of the one that the run began with", async () => {
    const { world, atConnect } = await begin();
    await world.assign("gate-new-a", [namespace("gate-new-a")]);
    await world.assign("gate-new-b", [namespace("gate-new"), configMap("gate-new/old")]);
    atConnect(1, () => world.assign("gate-new-b", [namespace("gate-new"), configMap("gate-new/new")]));
    await world.work();
    expect((await world.sync("gate-new-b"))?.observed).toMatchObject({ attempt: 2, phase: "Ready" });
    expect(await cluster.statusOf(`${configs("gate-new")}/new`)).toBe(200);
    expect(await cluster.statusOf(`${configs("gate-new")}/old`)).toBe(404);
  });

  test("a newer assignment with a later start time is not begun with the run", async () => {
    const { world, atConnect } = await begin();
    await world.assign("gate-soon-a", [namespace("gate-soon-a")]);
    await world.assign("gate-soon-b", [namespace("gate-soon-old")]);
    const startAt = later(world.clock.now(), 600);
    atConnect(1, () => world.assign("gate-soon-b", [namespace("gate-soon-new")], {}, { startAt }));
    await world.work();
    expect(await world.phase("gate-soon-a")).toBe("Ready");
    expect(await world.sync("gate-soon-b")).not.toHaveProperty("observed");
    expect(await cluster.statusOf("/api/v1/namespaces/gate-soon-new")).toBe(404);
    world.aheadMs += 601_000;
    await world.work();
    expect((await world.sync("gate-soon-b"))?.observed).toMatchObject({ attempt: 2, phase: "Ready" });
  });

  test("a Sync that was forgotten while others were worked on is not begun", async () => {
    const { world, atConnect } = await begin();
    await world.assign("gate-kept", [namespace("gate-kept")]);
    await world.assign("gate-lost", [namespace("gate-lost")]);
    atConnect(1, async () => {
      const row = await world.sync("gate-lost");
      if (row === undefined) throw new Error("it was assigned");
      const desired = orphaning(row.desired, { rollout: 2, assignedAt: row.desired.assignedAt });
      await world.table.write([{ put: { ...row, version: row.version + 1, desired } as SyncRow }]);
    });
    await world.work();
    expect(await world.sync("gate-lost")).not.toHaveProperty("observed");
    expect(await cluster.statusOf("/api/v1/namespaces/gate-lost")).toBe(404);
  });

  test("a suspend stops a deletion like any other write, and a resume begins it", async () => {
    const { world, atConnect } = await begin();
    await world.assign("gate-going", [namespace("gate-going"), configMap("gate-going/c")]);
    await world.work();
    await world.assign("gate-first", [namespace("gate-first")]);
    await world.assignDelete("gate-going");
    const going = await world.sync("gate-going");
    if (going === undefined) throw new Error("it was assigned");
    // The Sync that waits longest comes first.
    world.aheadMs += 1000;
    const desired = { ...going.desired, assignedAt: world.clock.now().toISOString() };
    await world.table.write([{ put: { ...going, version: going.version + 1, desired } as SyncRow }]);
    atConnect(1, () => world.suspend("gate-going"));
    await world.work();
    expect(await cluster.statusOf(`${configs("gate-going")}/c`)).toBe(200);
    await world.setOwner("gate-going", {});
    await world.work();
    expect(await cluster.statusOf(`${configs("gate-going")}/c`)).toBe(404);
  });

  test("a check that finds nothing reads no owner again, and a check that corrects drift reads owners once more", async () => {
    const { world } = await begin();
    let batches = 0;
    const table = new Proxy(world.table, {
      get(inner, name: keyof Table) {
        if (name === "getMany") batches += 1;
        const member = inner[name] as unknown;
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });
    const work = async () => {
      batches = 0;
      await world.work({ table });
      return batches;
    };
    await world.assign("gate-cost", [namespace("gate-cost"), configMap("gate-cost/c")]);
    // One read gets the owners of all Syncs that are due in the run, and the first attempt uses it.
    expect(await work()).toBe(1);
    world.aheadMs += 700_000;
    expect(await work()).toBe(1);
    await cluster.raw("DELETE", `${configs("gate-cost")}/c`);
    world.aheadMs += 700_000;
    expect(await work()).toBe(1 + 1);
    await world.assign("gate-cost", [namespace("gate-cost"), configMap("gate-cost/c"), configMap("gate-cost/d")]);
    await world.assign("gate-costs", [namespace("gate-costs")]);
    expect(await work()).toBe(1 + 1);
  });

  test("an object that a newer assignment keeps is not pruned by a worker that lost its lease meanwhile", async () => {
    const { world, at, calls } = await begin();
    const name = "gate-claim";
    const desired = [namespace(name), configMap(`${name}/kept`), configMap(`${name}/desired`)];
    await world.assign(name, desired);
    await world.work();
    await world.assign(name, [namespace(name), configMap(`${name}/kept`, { k: "2" })]);
    let isApplied = false;
    at(writes("kept"), async () => {
      isApplied = true;
    });
    // The answer has the assignment of the time of the request. Before it comes, another worker applies a newer assignment.
    const table = new Proxy(world.table, {
      get(inner, method: keyof Table) {
        if (method !== "getMany") {
          const member = inner[method] as unknown;
          return typeof member === "function" ? member.bind(inner) : member;
        }
        return async (...given: Parameters<Table["getMany"]>) => {
          const rows = await inner.getMany(...given);
          if (!isApplied) return rows;
          isApplied = false;
          await inner.write([{ delete: keys.lease("c1") }]);
          await world.assign(name, desired);
          await world.work();
          expect((await world.sync(name))?.observed).toMatchObject({ attempt: 3, phase: "Ready" });
          return rows;
        };
      },
    });
    await expect(world.work({ table })).rejects.toBeInstanceOf(ConflictError);
    expect((await world.sync(name))?.desired.attempt).toBe(3);
    expect(calls.filter(({ method }) => method === "delete")).toEqual([]);
    expect(await cluster.statusOf(`${configs(name)}/desired`)).toBe(200);
  });

  test("rows that were read too long before the first turn are read again", async () => {
    const { world, calls } = await begin();
    const slow = (ms: number, act: () => Promise<unknown>) =>
      new Proxy(world.table, {
        get(inner, name: keyof Table) {
          if (name !== "getMany") {
            const member = inner[name] as unknown;
            return typeof member === "function" ? member.bind(inner) : member;
          }
          return async (...given: Parameters<Table["getMany"]>) => {
            const rows = await inner.getMany(...given);
            world.aheadMs += ms;
            await act();
            return rows;
          };
        },
      });
    await world.assign("gate-slow", [namespace("gate-slow")]);
    await world.work({ table: slow(5_000, () => world.suspend("gate-slow")) });
    expect(calls.filter(isWrite)).toEqual([]);
    expect(await world.sync("gate-slow")).not.toHaveProperty("observed");
    await world.setOwner("gate-slow", {});
    await world.work({ table: slow(5_000, () => world.setFreezes({ freezes: [freeze] })) });
    expect(calls.filter(isWrite)).toEqual([]);
    await world.setFreezes({});
    await world.work();
    expect(await world.phase("gate-slow")).toBe("Ready");
  });

  describe("a worker under a freeze", () => {
    test("nothing begins under a freeze, and a thaw starts it at once", async () => {
      const { world, calls } = await begin();
      await world.setFreezes({ freezes: [freeze] });
      await world.assign("ice-new", [namespace("ice-new")]);
      await world.work();
      expect(calls).toEqual([]);
      const row = await world.sync("ice-new");
      expect(row).not.toHaveProperty("observed");
      expect(row?.held).toMatchObject({ name: "inc-4711", by: "ana", reason: "INC-4711", attempt: 1 });
      await world.work();
      expect((await world.sync("ice-new"))?.version).toBe(row?.version);
      await world.setFreezes({ lifted: [{ ...freeze, lifted: { by: "bo", at: world.clock.now().toISOString() } }] });
      await world.work();
      expect(await world.phase("ice-new")).toBe("Ready");
      expect(await world.sync("ice-new")).not.toHaveProperty("held");
    });

    test("the row is due when the freeze ends by itself", async () => {
      const { world } = await begin();
      const until = new Date(world.clock.now().getTime() + 120_000).toISOString();
      await world.setFreezes({ freezes: [{ ...freeze, until }] });
      await world.assign("ice-until", [namespace("ice-until")]);
      await world.work();
      const row = await world.sync("ice-until");
      if (row === undefined) throw new Error("it was assigned");
      expect(nextWork(row)).toBe(until);
      expect(row.dueKey).toMatch(until);
      world.aheadMs += 121_000;
      await world.work();
      expect(await world.phase("ice-until")).toBe("Ready");
    });

    test("drift is reported and not corrected under a freeze, health is checked, and a thaw corrects at once", async () => {
      const { world, calls } = await begin();
      await world.assign("ice-drift", [namespace("ice-drift"), configMap("ice-drift/c")]);
      await world.work();
      await cluster.raw("DELETE", `${configs("ice-drift")}/c`);
      await world.setFreezes({ freezes: [freeze] });
      const before = calls.filter(isWrite).length;
      world.aheadMs += 700_000;
      await world.work();
      expect(calls.filter(isWrite)).toHaveLength(before);
      const frozen = await world.sync("ice-drift");
      expect(frozen?.observed?.drift).toMatchObject({ objects: 1, corrected: false });
      expect(frozen?.observed?.phase).not.toBe("Ready");
      expect(frozen?.held).toMatchObject({ name: "inc-4711" });
      await world.setFreezes({});
      await world.work();
      expect(await cluster.statusOf(`${configs("ice-drift")}/c`)).toBe(200);
    });

    test("the worker prunes and deletes nothing under a freeze", async () => {
      const { world, at } = await begin();
      const kept = [namespace("ice-prune"), configMap("ice-prune/kept")];
      await world.assign("ice-prune", [...kept, configMap("ice-prune/left")]);
      await world.work();
      await world.assign("ice-prune", kept);
      at(writes("kept"), () => world.setFreezes({ freezes: [freeze] }));
      await world.work();
      expect(await cluster.statusOf(`${configs("ice-prune")}/left`)).toBe(200);
      expect((await world.sync("ice-prune"))?.observed).toMatchObject({
        phase: "Applying",
        reason: "Frozen",
        message: `everything was applied; nothing is pruned: ${frozenText}`,
      });
      await world.assignDelete("ice-prune");
      await world.work();
      expect(await cluster.statusOf(`${configs("ice-prune")}/kept`)).toBe(200);
      await world.setFreezes({});
      await world.work();
      expect(await cluster.statusOf(`${configs("ice-prune")}/kept`)).toBe(404);
      expect(await cluster.statusOf(`${configs("ice-prune")}/left`)).toBe(404);
    });

    test("a freeze of other clusters stops nothing", async () => {
      const { world } = await begin();
      const clusters = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };
      await world.setFreezes({ freezes: [{ ...freeze, clusters }] });
      await world.assign("ice-other", [namespace("ice-other")]);
      await world.work();
      expect(await world.phase("ice-other")).toBe("Ready");
    });

    test("nothing is written under freezes that cannot be read, and that is reported", async () => {
      const { world, calls } = await begin();
      const broken = {
        ...keys.freezeState,
        type: "Freezes",
        schema: 1,
        version: 1,
        freezes: [{ name: "x" }],
        lifted: [],
      };
      await world.table.write([{ put: broken }]);
      await world.assign("ice-broken", [namespace("ice-broken")]);
      await world.work();
      expect(calls).toEqual([]);
      expect((await world.sync("ice-broken"))?.observed).toMatchObject({
        phase: "Retrying",
        reason: "FreezesUnreadable",
        message: expect.stringContaining("nothing is written to any cluster"),
      });
      await world.setFreezes({});
      world.aheadMs += 60_000;
      await world.work();
      expect(await world.phase("ice-broken")).toBe("Ready");
    });

    test("nothing is written under freezes that a newer version wrote", async () => {
      const { world, calls } = await begin();
      await world.table.write([
        { put: { ...keys.freezeState, type: "Freezes", schema: newestRowSchema + 1, version: 1 } },
      ]);
      await world.assign("ice-newer", [namespace("ice-newer")]);
      await world.work();
      expect(calls).toEqual([]);
      expect((await world.sync("ice-newer"))?.observed).toMatchObject({ phase: "Retrying", reason: "NewerRow" });
    });
  });
});
