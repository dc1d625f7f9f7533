/** The planner, people and other workers write rows between a worker's read and its write. */
import { describe, expect, test } from "vitest";
import { LeaseLost } from "#functions/apply/lease/held-lease.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { forgotten } from "#shared/fleet/rows/lineage.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { type Gap, inEveryGap } from "#test/support/every-gap.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

/** A worker calls the table at least for the lease, the rows and the outcome. */
const fewestGaps = 3;
const [embedded] = clusterTargets;
if (embedded === undefined) throw new Error("there is no cluster to work on");

describe("a write between two calls of a worker", () => {
  const cluster = forAllTests(async () => clusterFixture(await embedded.start()));
  let worlds = 0;

  /**
   * Runs one check, with another writer's write right before one of the worker's calls.
   * @returns whether that writer had its turn, and whether the worker had begun to check the cluster by then.
   */
  async function works(gap: Gap, rival: (world: WorkerWorld, name: string) => Promise<void>) {
    const name = `two-${++worlds}`;
    let checks = false;
    const connector = {
      async connect() {
        checks = true;
        return cluster.client;
      },
      distrust() {},
    };
    const world = await new WorkerWorld(connector).begin();
    await world.assign(name, [namespace(name), configMap(`${name}/first`)]);
    let took = false;
    let late = false;
    const table = gap(world.table, async () => {
      took = true;
      late = checks;
      await rival(world, name);
    });
    // The worker may report that another one has the lease by then.
    await world.work({ table }).catch((error: unknown) => expect(error).toBeInstanceOf(LeaseLost));
    return { world, name, took, late };
  }

  test("the planner's newer assignment is not reverted, and what was applied is remembered", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const { world, name, took } = await works(gap, (other, sync) => {
        return other.assign(sync, [namespace(sync), configMap(`${sync}/second`)]);
      });
      const row = await world.sync(name);
      expect(row?.desired.attempt).toBe(took ? 2 : 1);
      expect(row?.observed?.inventory).toBeDefined();
      expect(row?.dueKey).toBeDefined();
      await world.work();
      const settled = await world.sync(name);
      expect(settled?.observed).toMatchObject({ attempt: took ? 2 : 1, phase: "Ready" });
      const path = `/api/v1/namespaces/${name}/configmaps`;
      expect(await cluster.statusOf(`${path}/first`)).toBe(took ? 404 : 200);
      expect(await cluster.statusOf(`${path}/second`)).toBe(took ? 200 : 404);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("a person's change to the Cluster is not reverted", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const { world, took } = await works(gap, async ({ table }) => {
        const row = await table.get(keys.cluster("c1"));
        if (row === undefined) throw new Error("there is no Cluster");
        const labels = { changed: "meanwhile" };
        await table.write([{ put: { ...row, labels, version: row.version + 1 } as ClusterRow }]);
      });
      const row = await world.table.get(keys.cluster("c1"));
      expect(row?.labels.changed).toBe(took ? "meanwhile" : undefined);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("a Sync that was forgotten meanwhile stays forgotten", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const { world, name, took } = await works(gap, async (other, sync) => {
        const row = await other.sync(sync);
        if (row === undefined) throw new Error(`there is no Sync ${sync}`);
        const { observed: _observed, ...kept } = row;
        const desired = forgotten(row, other.clock.now().toISOString());
        const next: SyncRow = { ...kept, desired, version: row.version + 1 };
        await other.table.write([{ put: next, when: { version: row.version } }]);
      });
      const row = await world.sync(name);
      expect(row?.desired.action).toBe(took ? "orphan" : "apply");
      expect(row?.observed?.phase).toBe(took ? undefined : "Ready");
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  const remembered = { attempt: 9, fence: 30, token: "of-others" };
  test.each([
    [
      "was recovered from the cluster's memory meanwhile",
      { recovered: { by: "ana", at: "2026-11-20T08:00:00.000Z", remembered } },
    ],
    ["belongs to another owner of that name by now", { ownerUid: "uid-of-another" }],
    ["was written by a newer version meanwhile", { schema: newestRowSchema + 1 }],
  ] as const)("observations are not written to a Sync that %s", async (_what, half) => {
    let lateOnes = 0;
    const gaps = await inEveryGap(async (gap) => {
      const { world, name, late } = await works(gap, async (other, sync) => {
        const row = await other.sync(sync);
        if (row === undefined) throw new Error(`there is no Sync ${sync}`);
        const { observed: _observed, ...kept } = row;
        const next: SyncRow = { ...kept, ...half, version: row.version + 1 };
        await other.table.write([{ put: next, when: { version: row.version } }]);
      });
      if (!late) return;
      lateOnes++;
      const [row] = await world.table.getMany([keys.sync("c1", "tests", name)], { newer: "kept" });
      expect(row).not.toHaveProperty("observed");
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
    expect(lateOnes).toBeGreaterThan(0);
  });

  const accepted = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1, uid: "another" };
  test.each([
    ["was registered anew", { uid: "another" }],
    ["was accepted as another cluster", { operations: { accepted } }],
  ] as const)("observations are not written to a Cluster that %s meanwhile", async (_what, half) => {
    let lateOnes = 0;
    const gaps = await inEveryGap(async (gap) => {
      const { world, late } = await works(gap, async ({ table }) => {
        const row = await table.get(keys.cluster("c1"));
        if (row === undefined) throw new Error("there is no Cluster");
        const next: ClusterRow = { ...row, ...half, status: { conditions: [] }, version: row.version + 1 };
        await table.write([{ put: next, when: { version: row.version } }]);
      });
      if (!late) return;
      lateOnes++;
      expect((await world.table.get(keys.cluster("c1")))?.status).toEqual({ conditions: [] });
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
    expect(lateOnes).toBeGreaterThan(0);
  });

  test("a reconcile that is written meanwhile is not lost", async () => {
    const gaps = await inEveryGap(async (gap) => {
      const { world, name, took } = await works(gap, async ({ table }, sync) => {
        await table.update({ update: keys.sync("c1", "tests", sync), set: { reconcile: 7 }, add: { version: 1 } });
      });
      await world.work();
      const row = await world.sync(name);
      expect(row?.reconcile).toBe(took ? 7 : undefined);
      expect(row?.observed?.handledReconcile).toBe(took ? 7 : undefined);
      expect(row?.observed?.phase).toBe("Ready");
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });

  test("a worker that lost its lease does not overwrite the outcome of the next worker", async () => {
    const gaps = await inEveryGap(async (gap) => {
      let theirs: unknown;
      const { world, name, took } = await works(gap, async (other, sync) => {
        other.aheadMs += 400_000;
        await other.work();
        theirs = (await other.sync(sync))?.observed;
        other.aheadMs -= 400_000;
      });
      const row = await world.sync(name);
      expect(row?.observed?.phase).toBe("Ready");
      if (took) expect(row?.observed?.fence).toBeGreaterThanOrEqual((theirs as { fence: number }).fence);
    });
    expect(gaps).toBeGreaterThanOrEqual(fewestGaps);
  });
});
