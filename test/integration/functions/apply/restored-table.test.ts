/**
 * Two tables are in use at once: a copy is restored from a backup while workers of the first table still run. The copy
 * writes nothing to Syncs that the first table has assigned since, until somebody accepts it.
 */
import { describe, expect, test } from "vitest";
import { accepted } from "#shared/fleet/rows/lineage.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { inEveryGap } from "#test/support/every-gap.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { isWrite, watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** A worker calls the table at least for the lease, the rows and the outcome. */
const fewestGaps = 3;
/** A time that is longer than an interval and than a lease. */
const laterMs = 700_000;

describe.each(clusterTargets)("two tables for one cluster, on $name", (target) => {
  const cluster = forAllTests(async () => clusterFixture(await target.start()));
  let worlds = 0;

  async function begin() {
    const name = `tables-${++worlds}`;
    const blobs = new MemoryBlobStore();
    const writes: string[] = [];
    /** Is called before each write. A worker for which it throws writes nothing any more. */
    let hear = async (_write: string): Promise<void> => {};
    const worldOf = (by: string) =>
      new WorkerWorld(
        {
          connect: async () =>
            watchedClient(cluster.client, async (call) => {
              if (!isWrite(call)) return;
              const write = `${by} ${call.method} ${call.name}`;
              await hear(write);
              writes.push(write);
            }),
          distrust() {},
        },
        blobs,
      );
    const path = `/api/v1/namespaces/${name}/configmaps`;
    const old = await worldOf("old").begin();
    return {
      name,
      old,
      /** The writes that the workers of one table have sent to the cluster. */
      writesOf: (by: "old" | "copy") => writes.filter((write) => write.startsWith(`${by} `)),
      onWrite(listener: typeof hear) {
        hear = listener;
      },
      /** A copy of the table with its present rows, and a worker of the copy. */
      async copy(): Promise<WorkerWorld> {
        const copy = worldOf("copy");
        copy.aheadMs = old.aheadMs;
        await copy.table.write(old.table.all().map((row) => ({ put: row })));
        return copy;
      },
      /** The namespace, and ConfigMaps of these names with the value. */
      set(value: string, ...names: readonly string[]): readonly ManifestObject[] {
        return [namespace(name), ...names.map((each) => configMap(`${name}/${each}`, { k: value }))];
      },
      /** The value and uid of each ConfigMap in the cluster, by its name. */
      async contents() {
        const { items } = (await cluster.raw("GET", path)) as { items?: readonly ManifestObject[] };
        const found = (items ?? []).filter((item) => item.metadata.name !== "kube-root-ca.crt");
        return Object.fromEntries(
          found.map((item) => [
            item.metadata.name,
            { k: stringAt(item, "data", "k"), uid: stringAt(item, "metadata", "uid") },
          ]),
        );
      },
      byHand: (object: string, value: string) =>
        cluster.raw("PATCH", `${path}/${object}`, { as: "merge-patch", body: { data: { k: value } } }),
    };
  }

  async function timePasses(world: WorkerWorld): Promise<void> {
    for (let check = 0; check < 3; check++) {
      world.aheadMs += laterMs;
      await world.work();
    }
  }

  async function reasonOf(world: WorkerWorld, name: string): Promise<string | undefined> {
    return (await world.sync(name))?.observed?.reason;
  }

  /** Accepts the row as `starling recover` does. */
  async function accept(world: WorkerWorld, name: string): Promise<void> {
    const row = await world.sync(name);
    if (row === undefined) throw new Error(`there is no Sync ${name}`);
    const act = { by: "ana", at: world.clock.now().toISOString() };
    const next: SyncRow = { ...row, ...accepted(row, act), version: row.version + 1 };
    await world.table.write([{ put: next, when: { version: row.version } }]);
  }

  test("the copy writes nothing to a Sync that the first table has assigned since, whatever happens in the copy", async () => {
    const { name, old, writesOf, copy: copied, set, contents, byHand } = await begin();
    await old.assign(name, set("1", "a", "b"));
    await old.work();
    const copy = await copied();
    await old.assign(name, set("2", "a", "c"));
    await old.work();
    expect(await old.phase(name)).toBe("Ready");
    const before = await contents();

    await timePasses(copy);
    for (const value of ["3", "4", "5"]) {
      await copy.assign(name, set(value, "a", "d"));
      await timePasses(copy);
      expect(await reasonOf(copy, name)).toBe("ClusterAhead");
    }
    await byHand("a", "by hand");
    await timePasses(copy);
    await copy.assignDelete(name);
    await timePasses(copy);
    expect(writesOf("copy")).toEqual([]);

    await timePasses(old);
    expect(await old.phase(name)).toBe("Ready");
    expect(await contents()).toEqual(before);
  });

  test("the copy reports the cluster's memory as long as it forbids writes, also for a paused attempt", async () => {
    const { name, old, copy: copied, set } = await begin();
    await old.assign(name, set("1", "a"));
    await old.work();
    const copy = await copied();
    await old.assign(name, set("2", "a"));
    await old.work();
    await copy.assign(name, set("3", "a"));
    await timePasses(copy);
    const remembered = (await copy.sync(name))?.observed?.remembered;
    expect(remembered).toMatchObject({ attempt: 2 });
    await copy.pause(name, { reason: "Failed" });
    await timePasses(copy);
    expect((await copy.sync(name))?.observed).toMatchObject({ phase: "Failed", reason: "ClusterAhead", remembered });
  });

  test("the table that assigns first goes on if both have the same rows, and the other one writes nothing", async () => {
    const { name, old, writesOf, copy: copied, set, contents } = await begin();
    await old.assign(name, set("1", "a", "b"));
    await old.work();
    const copy = await copied();
    const { a } = await contents();
    await copy.assign(name, set("2", "a", "c"));
    await copy.work();
    expect(await copy.phase(name)).toBe("Ready");
    const before = writesOf("old");

    await old.assign(name, set("3", "a", "b"));
    await timePasses(old);
    expect(await reasonOf(old, name)).toBe("ClusterAhead");
    expect(writesOf("old")).toEqual(before);
    expect(await contents()).toMatchObject({ a: { k: "2", uid: a?.uid }, c: { k: "2" } });
    expect(await contents()).not.toHaveProperty("b");
  });

  test("workers of both tables that run at once leave the state of one table, which stays", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const { name, old, writesOf, copy: copied, set, contents } = await begin();
      await old.assign(name, set("1", "a", "b"));
      await old.work();
      const { a } = await contents();
      const copy = await copied();
      await old.assign(name, set("old", "a", "c"));
      await copy.assign(name, set("copy", "a", "d"));
      await old.work({ table: gap(old.table, async () => void (await copy.work())) });
      await timePasses(old);
      await timePasses(copy);
      const end = await contents();
      const [winner, loser] = end.a?.k === "old" ? ([old, copy] as const) : ([copy, old] as const);
      expect(await winner.phase(name)).toBe("Ready");
      expect(await reasonOf(loser, name)).toBe("ClusterAhead");
      expect(end).toEqual({
        a: { k: winner === old ? "old" : "copy", uid: a?.uid },
        [winner === old ? "c" : "d"]: expect.objectContaining({ k: winner === old ? "old" : "copy" }),
      });
      const lost = writesOf(loser === old ? "old" : "copy");
      await timePasses(old);
      await timePasses(copy);
      expect(writesOf(loser === old ? "old" : "copy")).toEqual(lost);
      expect(await contents()).toEqual(end);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("the copy goes on after somebody has accepted it, and the old table writes nothing any more", async () => {
    const { name, old, writesOf, copy: copied, set, contents, byHand } = await begin();
    await old.assign(name, set("1", "a", "b"));
    await old.work();
    const copy = await copied();
    await old.assign(name, set("2", "a", "c"));
    await old.work();
    const before = await contents();
    await copy.assign(name, set("3", "a", "c"));
    await copy.work();
    expect(await reasonOf(copy, name)).toBe("ClusterAhead");

    await accept(copy, name);
    await copy.assign(name, set("4", "a", "c"));
    await copy.work();
    expect(await copy.phase(name)).toBe("Ready");
    expect(await contents()).toEqual({ a: { k: "4", uid: before.a?.uid }, c: { k: "4", uid: before.c?.uid } });

    const sent = writesOf("old");
    await timePasses(old);
    await old.assign(name, set("5", "a"));
    await timePasses(old);
    await byHand("a", "by hand");
    await timePasses(old);
    expect(await reasonOf(old, name)).toBe("ClusterAhead");
    expect(writesOf("old")).toEqual(sent);
    await timePasses(copy);
    expect((await contents()).a?.k).toBe("4");
  });

  describe("a copy that is restored in the middle of an attempt", () => {
    /** The worker of the old table dies before it writes the last object of its second attempt. */
    async function diesInTheMiddle() {
      const made = await begin();
      await made.old.assign(made.name, made.set("1", "a", "b", "z"));
      await made.old.work();
      const before = await made.copy();
      let during: WorkerWorld | undefined;
      made.onWrite(async (write) => {
        if (write !== "old apply z") return;
        // The other objects are written at the same time.
        await expect.poll(made.contents, { timeout: 20_000 }).toMatchObject({ a: { k: "2" }, c: { k: "2" } });
        during ??= await made.copy();
        throw new Error("the worker dies");
      });
      await made.old.assign(made.name, made.set("2", "a", "c", "z"));
      await made.old.work().catch(() => {});
      made.onWrite(async () => {});
      if (during === undefined) throw new Error("the worker came to its end");
      return { ...made, before, during };
    }

    test("a copy whose rows have the attempt completes it, and makes no object again", async () => {
      const { name, during, set, contents } = await diesInTheMiddle();
      const half = await contents();
      expect(half).toMatchObject({ a: { k: "2" }, b: { k: "1" }, c: { k: "2" }, z: { k: "1" } });
      await timePasses(during);
      expect(await during.phase(name)).toBe("Ready");
      expect(await contents()).toEqual({ a: half.a, c: half.c, z: { k: "2", uid: half.z?.uid } });
      await during.assign(name, set("3", "a", "c", "z"));
      await timePasses(during);
      expect(await contents()).toMatchObject({ a: { k: "3", uid: half.a?.uid } });
    });

    test("a copy from before the attempt writes nothing until it is accepted, and then prunes the attempt's objects", async () => {
      const { name, before, writesOf, set, contents } = await diesInTheMiddle();
      const half = await contents();
      await timePasses(before);
      await before.assign(name, set("3", "a", "b", "z"));
      await timePasses(before);
      expect(await reasonOf(before, name)).toBe("ClusterAhead");
      expect(writesOf("copy")).toEqual([]);
      expect(await contents()).toEqual(half);

      await accept(before, name);
      await before.assign(name, set("4", "a", "b", "z"));
      await timePasses(before);
      expect(await before.phase(name)).toBe("Ready");
      const { a, b, z } = half;
      expect(await contents()).toEqual({
        a: { k: "4", uid: a?.uid },
        b: { k: "4", uid: b?.uid },
        z: { k: "4", uid: z?.uid },
      });
      expect(writesOf("copy").filter((write) => write.includes(" delete "))).toEqual(["copy delete c"]);
    });
  });
});
