import { describe, expect, test, vi } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, isWrite, watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

type LeaseRow = Row & { readonly owner?: string; readonly leaseUntil?: string; readonly fence: number };

describe.each(clusterTargets)("a lease that is short on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  async function begin(hear: (call: ClientCall) => Promise<void> = async () => {}) {
    const writes: ClientCall[] = [];
    const connector: ClusterConnector = {
      connect: async () =>
        watchedClient(cluster.client, async (call) => {
          if (isWrite(call)) writes.push(call);
          await hear(call);
        }),
      distrust() {},
    };
    return { world: await new WorkerWorld(connector).begin(), writes };
  }

  const leaseOf = async (world: WorkerWorld) => (await world.table.get(keys.lease("c1"))) as LeaseRow;

  /** The table for a worker that dies before it writes its observation and releases the lease. */
  function asOfTheDead(world: WorkerWorld): Table {
    const dead = () => Promise.reject(new Error("the worker is dead"));
    return new Proxy(world.table, {
      get(inner, name: keyof Table) {
        if (name === "write") return dead;
        const member = inner[name] as unknown;
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });
  }

  test.each([
    ["that agree", 0],
    ["that differ by six seconds", -6000],
  ])(
    "the lease of a worker that died is free for the next worker within a minute, with clocks %s",
    async (_clocks, offMs) => {
      const { world } = await begin();
      const name = `died${offMs}`;
      await world.assign(name, [namespace(name)]);
      await expect(world.work({ table: asOfTheDead(world) })).rejects.toThrow("the worker is dead");
      expect(await world.phase(name)).toBeUndefined();
      await world.work();
      expect(await world.phase(name), "while it may still be alive").toBeUndefined();
      world.aheadMs += 60_000 + offMs;
      await world.work();
      expect(await world.phase(name)).toBe("Ready");
    },
  );

  test("the lease is renewed while its worker waits for a cluster, and its row is due when that worker dies", async () => {
    const asleep = Promise.withResolvers<void>();
    const { world } = await begin(async ({ name }) => (name === "slow" ? asleep.promise : undefined));
    await world.assign("slow-one", [namespace("slow-one"), configMap("slow-one/slow")]);
    const working = world.work();
    await vi.waitFor(async () => expect(await leaseOf(world)).toBeDefined());
    for (let turn = 0; turn < 4; turn++) {
      const before = (await leaseOf(world)).leaseUntil ?? "";
      world.aheadMs += 20_000;
      await vi.waitFor(async () => expect((await leaseOf(world)).leaseUntil?.localeCompare(before)).toBe(1), 10_000);
    }
    const held = await leaseOf(world);
    expect(held).toMatchObject({
      fence: 1,
      begun: { sync: "tests/slow-one", alone: false },
      dueKey: expect.stringContaining("#CL#c1|LEASE"),
    });
    await world.work();
    expect((await leaseOf(world)).fence).toBe(1);

    asleep.resolve();
    await working;
    expect(await world.phase("slow-one")).toBe("Ready");
    const free = await leaseOf(world);
    for (const name of ["owner", "leaseUntil", "begun"]) expect(free).not.toHaveProperty(name);
    // The row is due for the routine now.
    expect(free.dueKey?.localeCompare(held.dueKey ?? "")).toBe(1);
  });

  test("the lease is not renewed after the end of the invocation that took it", async () => {
    const asleep = Promise.withResolvers<void>();
    const fellAsleep = Promise.withResolvers<void>();
    let isFirst = true;
    const { world } = await begin(async ({ name }) => {
      if (name !== "slow" || !isFirst) return;
      isFirst = false;
      fellAsleep.resolve();
      await asleep.promise;
    });
    await world.assign("frozen", [namespace("frozen-sandbox"), configMap("frozen-sandbox/slow")]);
    const started = world.clock.now().getTime();
    const working = world.work({ remainingMs: 50_000 });
    await fellAsleep.promise;
    world.aheadMs += 40_000;
    await vi.waitFor(async () => expect((await leaseOf(world)).dueKey).toBeDefined(), 10_000);
    const until = new Date((await leaseOf(world)).leaseUntil ?? "").getTime();
    expect(until - started).toBeLessThanOrEqual(50_000 + 15_000 + 1_000);
    world.aheadMs += 30_000;
    await world.work();
    expect((await leaseOf(world)).fence).toBe(2);
    asleep.resolve();
    await working.catch(() => undefined);
    expect(await leaseOf(world)).toMatchObject({ fence: 2 });
  });

  test("a worker whose lease was taken by another worker stops all writes", async () => {
    const { world, writes } = await begin(async ({ method, name }) => {
      if (method !== "apply" || name !== "lost-lease") return;
      world.aheadMs += 31_000;
      // Another worker takes the lease, and its clock is ahead.
      const set = { owner: "another", leaseUntil: new Date(world.clock.now().getTime() + 45_000).toISOString() };
      await world.table.update({ update: keys.lease("c1"), set, add: { fence: 1 } });
    });
    await world.assign("lost-lease", [namespace("lost-lease"), configMap("lost-lease/c")]);
    await expect(world.work()).rejects.toThrow("the lease of CL#c1 with fence 1 was lost");
    expect(writes.map(({ name }) => name)).not.toContain("c");
    expect(await world.phase("lost-lease")).toBeUndefined();
    expect(await leaseOf(world)).toMatchObject({ owner: "another" });
  });

  test("a worker that cannot renew its lease stops all writes before the lease ends", async () => {
    const { world, writes } = await begin(async ({ method, name }) => {
      if (method === "apply" && name === "no-renewal") world.aheadMs += 31_000;
    });
    await world.assign("no-renewal", [namespace("no-renewal"), configMap("no-renewal/c")]);
    const table = new Proxy(world.table, {
      get(inner, name: keyof Table) {
        if (name === "update")
          return async (write: Parameters<Table["update"]>[0]) => {
            if (write.set?.dueKey !== undefined) throw new Error("the table is away");
            return inner.update(write);
          };
        const member = inner[name] as unknown;
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });
    await expect(world.work({ table })).rejects.toThrow("the lease of CL#c1 with fence 1 was lost");
    expect(writes.map(({ name }) => name)).not.toContain("c");
  });
});
