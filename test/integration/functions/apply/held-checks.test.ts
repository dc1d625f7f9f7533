import { describe, expect, test } from "vitest";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { type ClientCall, isWrite, watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const freeze = { name: "inc-4711", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-4711" };

/** The worker checks objects even while it may not write them. */
describe.each(clusterTargets)("checks that write nothing, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  describe.each(["freeze", "suspend"] as const)("under a %s", (how) => {
    async function begin(): Promise<{ readonly world: WorkerWorld; readonly calls: ClientCall[] }> {
      const calls: ClientCall[] = [];
      const client = watchedClient(cluster.client, async (call) => {
        calls.push(call);
      });
      return { world: await new WorkerWorld({ connect: async () => client, distrust() {} }).begin(), calls };
    }

    const hold = (world: WorkerWorld, name: string) =>
      how === "freeze" ? world.setFreezes({ freezes: [freeze] }) : world.suspend(name);
    const release = (world: WorkerWorld, name: string) =>
      how === "freeze" ? world.setFreezes({}) : world.setOwner(name, {});
    const nameOf = (what: string) => `${how}-${what}`;
    const pathOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;
    const objectsOf = (name: string, value = "1") => [namespace(name), configMap(`${name}/c`, { k: value })];
    const edit = (name: string) =>
      cluster.raw("PATCH", pathOf(name), { as: "merge-patch", body: { data: { k: "edited" } } });
    const dataOf = async (name: string) => (await cluster.raw("GET", pathOf(name))).data;

    async function rowOf(world: WorkerWorld, name: string): Promise<SyncRow> {
      const row = await world.sync(name);
      if (row === undefined) throw new Error("it was assigned");
      return row;
    }

    async function change(world: WorkerWorld, name: string, fields: Partial<SyncRow>): Promise<void> {
      const row = await rowOf(world, name);
      const next: SyncRow = { ...row, ...fields, version: row.version + 1 };
      await world.table.write([{ put: next }]);
    }

    async function checkAfter(world: WorkerWorld, seconds: number): Promise<void> {
      world.aheadMs += seconds * 1000;
      await world.work();
    }

    const drifted = (row: SyncRow) => row.observed?.conditions.find(({ type }) => type === "Drifted")?.status;

    test("a Sync that is in sync is checked, its drift is reported once, and corrected at once afterwards", async () => {
      const { world, calls } = await begin();
      const name = nameOf("settled");
      await world.assign(name, [...objectsOf(name), deployment(`${name}/web`)], { interval: "5m" });
      await world.work();
      await hold(world, name);
      await cluster.raw("DELETE", pathOf(name));
      const before = calls.filter(isWrite).length;
      const driftTimes = new Set<string | undefined>();
      for (let check = 1; check <= 5; check++) {
        await checkAfter(world, 400);
        const row = await rowOf(world, name);
        expect(row.observed).toMatchObject({ phase: "Verifying", drift: { objects: 1, corrected: false } });
        expect(driftTimes.add(row.observed?.drift?.at).size, `check ${check}`).toBe(1);
        expect(drifted(row)).toBe("True");
        // Between two checks that compare, the worker checks health.
        await checkAfter(world, 60);
        expect(drifted(await rowOf(world, name))).toBe("True");
      }
      expect(calls.filter(isWrite)).toHaveLength(before);
      await release(world, name);
      await world.work();
      expect(await cluster.statusOf(pathOf(name))).toBe(200);
      expect(drifted(await rowOf(world, name))).toBe("False");
    });

    test("objects of the last attempt are checked at their interval while a newer assignment may not begin", async () => {
      const { world, calls } = await begin();
      const name = nameOf("waiting");
      await world.assign(name, objectsOf(name));
      await world.work();
      await hold(world, name);
      await world.assign(name, objectsOf(name, "2"));
      await change(world, name, { stateSk: `Changing#c1#${name}` });
      const before = (await rowOf(world, name)).observed;
      await edit(name);
      const called = calls.length;
      for (let check = 0; check < 3; check++) await checkAfter(world, 100);
      expect(calls).toHaveLength(called);
      expect((await rowOf(world, name)).observed).toEqual(before);

      await checkAfter(world, 500);
      expect(calls.slice(called).filter(isWrite)).toEqual([]);
      const checked = await rowOf(world, name);
      expect(checked).toMatchObject({ desired: { attempt: 2 }, observed: { attempt: 1 } });
      expect(checked.observed?.drift).toMatchObject({ objects: 1, corrected: false });
      expect(checked.stateSk).toBe(`Changing#c1#${name}`);
      expect(await dataOf(name)).toEqual({ k: "edited" });

      await release(world, name);
      await world.work();
      expect((await rowOf(world, name)).observed).toMatchObject({ attempt: 2, phase: "Ready" });
      expect(await dataOf(name)).toEqual({ k: "2" });
    });

    test("a Sync that is to be deleted is checked until its deletion may begin", async () => {
      const { world, calls } = await begin();
      const name = nameOf("going");
      await world.assign(name, objectsOf(name));
      await world.work();
      await hold(world, name);
      await world.assignDelete(name);
      await edit(name);
      const before = calls.filter(isWrite).length;
      for (let check = 0; check < 3; check++) await checkAfter(world, 700);
      expect(calls.filter(isWrite)).toHaveLength(before);
      expect((await rowOf(world, name)).observed?.drift).toMatchObject({ objects: 1, corrected: false });
      await release(world, name);
      await world.work();
      expect(await cluster.statusOf(pathOf(name))).toBe(404);
    });

    test("a lost inventory is not taken for what was applied", async () => {
      const { world, calls } = await begin();
      const name = nameOf("lost");
      await world.assign(name, objectsOf(name));
      await world.work();
      await hold(world, name);
      await world.assign(name, objectsOf(name, "2"));
      await edit(name);
      const { observed, desired } = await rowOf(world, name);
      const inventory = observed?.inventory;
      const blobs = new MemoryBlobStore();
      for (const digest of [observed?.applied?.renderDigest, desired.renderDigest]) {
        const key = blobKeys.rendering(digest ?? "");
        await blobs.overwrite(key, await world.blobs.get(key));
      }
      const before = calls.filter(isWrite).length;
      world.aheadMs += 700_000;
      await world.work({ blobs });
      expect(calls.filter(isWrite)).toHaveLength(before);
      expect((await rowOf(world, name)).observed).toMatchObject({
        attempt: 1,
        phase: "Retrying",
        reason: "InventoryLost",
        inventory,
      });
    });
  });
});
