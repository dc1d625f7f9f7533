/** A worker's sandbox may use an owner that it has just read for another check. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("the owners of Syncs that are checked on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  /** Two Syncs that are ready; a sandbox checks one of them, and counts how often it reads the owner of that one. */
  async function begin(name: string) {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, [namespace(name), configMap(`${name}/c`)]);
    await world.setOwner(name, {});
    await world.work();
    expect(await world.phase(name)).toBe("Ready");
    world.aheadMs += 30_000;
    let reads = 0;
    const table: Table = new Proxy(world.table, {
      get(inner, member: keyof Table) {
        if (member !== "getMany") {
          const other = inner[member] as unknown;
          return typeof other === "function" ? other.bind(inner) : other;
        }
        return (...asked: Parameters<Table["getMany"]>) => {
          if (asked[0].some(({ pk, sk }) => sk === name && pk === keys.object("tests", "Sync", name).pk)) reads += 1;
          return inner.getMany(...asked);
        };
      },
    });
    let reconcile = 0;
    return {
      world,
      /** Somebody asks for a check, and a worker makes it. */
      async check(): Promise<number> {
        reads = 0;
        const row = await world.sync(name);
        if (row === undefined) throw new Error("it was assigned");
        const asked: SyncRow = { ...row, version: row.version + 1, reconcile: ++reconcile };
        await world.table.write([{ put: asked }]);
        await world.work({ table });
        return reads;
      },
    };
  }

  const pathOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;

  test("the owners are read once for checks that follow each other, and again after fifteen seconds", async () => {
    const { world, check } = await begin("known-once");
    expect(await check()).toBe(1);
    expect(await check()).toBe(0);
    world.aheadMs += 13_000;
    expect(await check()).toBe(0);
    world.aheadMs += 3_000;
    expect(await check()).toBe(1);
    expect((await world.sync("known-once"))?.observed?.handledReconcile).toBe(4);
  });

  test("the owners are read before a write, however recently they were read", async () => {
    const { world, check } = await begin("known-drift");
    await check();
    expect(await check()).toBe(0);
    await world.suspend("known-drift");
    await cluster.raw("DELETE", pathOf("known-drift"));
    expect(await check()).toBe(1);
    expect(await cluster.statusOf(pathOf("known-drift"))).toBe(404);
    expect((await world.sync("known-drift"))?.observed?.withheld).toBe("Suspended");
  });

  test("suspended owners are read at each check, so that a resume takes effect at once", async () => {
    const { world, check } = await begin("known-paused");
    await check();
    await world.suspend("known-paused");
    world.aheadMs += 16_000;
    await cluster.raw("DELETE", pathOf("known-paused"));
    expect(await check()).toBeGreaterThan(0);
    expect(await check()).toBeGreaterThan(0);
    await world.setOwner("known-paused", {});
    await check();
    await world.work();
    expect(await cluster.statusOf(pathOf("known-paused"))).toBe(200);
  });
});
