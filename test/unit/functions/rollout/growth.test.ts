/** The planner's reads and rows do not grow with what has nothing to do with the call. They are counted at the table. */
import { describe, expect, test } from "vitest";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { ana, begin, names, ownPaths, revise, worldOf } from "#test/support/planner-story.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

/** A group whose rollout is everywhere, in a table with pages as large as DynamoDB's. */
async function settledWorld(clusters: number, templates: number): Promise<PlannerWorld> {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 1000 }), blobs: new MemoryBlobStore() });
  for (const name of names(clusters)) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup(
    { maxConcurrent: "100%" },
    templates === 1 ? undefined : names(templates, "t").map((name) => ({ name, source: "app" })),
  );
  await made.rollOut();
  return made;
}

describe("clusters that join a first stage run one by one", { timeout: 60_000 }, () => {
  test("clusters that join make the stage run's row no longer, and get a turn each", async () => {
    const made = await worldOf(["c000"], { maxConcurrent: 1 }, ownPaths);
    await begin(made);
    for (const name of names(12, "n")) {
      await made.addCluster(name, "all");
      await made.plan();
    }
    expect(made.stageRun("all")).toMatchObject({ size: 13, pages: [{ first: 0 }], counts: { Assigned: 1 } });
    await made.rollOut();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 13 } });
  });
});

describe("a deletion", { timeout: 60_000 }, () => {
  async function costOf(clusters: number, cascade: "delete" | "orphan") {
    const made = await settledWorld(clusters, 3);
    const { table, counts } = countedTable(made.table);
    await made.operate({ deletion: { ...ana(made.now), cascade } });
    for (let round = 0; round < 20 && made.rows("SyncGroup").length > 0; round++) {
      await made.plan(table);
      for (const { cluster } of made.slots()) await made.finish(cluster);
    }
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.action !== "orphan")).toEqual([]);
    return counts;
  }

  test.each(["delete", "orphan"] as const)(
    "a deletion by %s reads as many rows for each cluster, in steps of one size, however many clusters there are",
    async (cascade) => {
      const few = await costOf(40, cascade);
      const many = await costOf(120, cascade);
      expect(many.rowsRead / 120).toBeLessThanOrEqual((1.1 * few.rowsRead) / 40);
      expect(many.longestStep).toBeLessThanOrEqual(few.longestStep + 1);
    },
  );
});

describe("a check of the whole group", { timeout: 60_000 }, () => {
  /** The cost of a check during a deletion that all clusters but one have completed. */
  async function costOfCheck(clusters: number) {
    const made = await settledWorld(clusters, 1);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    for (const { cluster } of made.slots().slice(1)) await made.finish(cluster);
    await made.plan();
    expect(made.slots()).toHaveLength(1);
    const { table, counts } = countedTable(made.table);
    await made.plan(table);
    return counts;
  }

  test("a check during a deletion reads no cluster that is done", async () => {
    expect(await costOfCheck(120)).toEqual(await costOfCheck(40));
  });

  /** The cost when all clusters but one were unreachable, and answer again, with a maxConcurrent of one. */
  async function costOfWaiting(clusters: number) {
    const made = await settledWorld(clusters, 1);
    await made.setGroup({ maxConcurrent: "100%", maxUnreachable: "100%" });
    await revise(made, "bbb");
    for (const [index, { cluster }] of made.slots().entries())
      await made.finish(cluster, index === 0 ? "Ready" : "Unreachable");
    await made.setGroup({ maxConcurrent: 1, maxUnreachable: "100%" });
    await made.plan();
    for (const name of names(clusters).slice(1)) await made.observe(name, "Reachable", { name: "web.app" });
    await made.plan();
    expect(made.rolloutState().catchUps).toMatchObject({ waiting: clusters - 2, changing: 1 });
    const { table, counts } = countedTable(made.table);
    await made.plan(table);
    return counts;
  }

  test("a check does not read again the clusters that already wait to catch up", async () => {
    expect((await costOfWaiting(120)).requests).toBe((await costOfWaiting(40)).requests);
  });

  test("a check ends with its call, and the next call goes on with the clusters that are left", async () => {
    const made = await settledWorld(120, 1);
    // The index is behind: the clusters are healthy.
    for (const row of made.rows<SyncRow>("SyncOnCluster"))
      await made.table.write([
        {
          put: { ...row, version: row.version + 1, stateSk: stateIndex.sk("Reachable", row) },
          when: { version: row.version },
        },
      ]);
    const { table } = countedTable(made.table);
    made.sender.take();
    let calls = 0;
    const slow: Table = {
      ...table,
      getMany(keys, reading) {
        calls++;
        made.advanceClock(10);
        return table.getMany(keys, reading);
      },
    };
    await made.plan(slow);
    const [sent] = made.sender.take();
    expect(sent).toEqual({ to: "rollout", owner, after: "c079" });
    expect(calls).toBe(6);
  });
});

test("a stage run keeps only the beginning of a cluster's failure report", { timeout: 60_000 }, async () => {
  const made = await worldOf(names(12), { maxConcurrent: "100%", maxFailures: 5 });
  await begin(made);
  for (const { cluster } of made.slots()) await made.observe(cluster, "Failed", { reason: `E${"x".repeat(2000)}` });
  await made.plan();
  const stageRun = made.stageRun("all");
  expect(stageRun).toMatchObject({ phase: "Halted", counts: { Failed: 12 } });
  expect(stageRun.failures.map(({ reason }) => reason.length)).toEqual(Array.from({ length: 10 }, () => 300));
  expect(Math.max(...stageRun.transitions.map(({ message }) => message.length))).toBe(300);
});

describe("a group that names its clusters", { timeout: 60_000 }, () => {
  async function named(count: number) {
    const made = await worldOf(names(count), { maxConcurrent: "100%" }, undefined, { names: names(count) });
    await made.rollOut();
    made.advanceClock(3600);
    await made.plan();
    return made;
  }

  test("an idle check of a group costs the same, however many clusters it names", async () => {
    const costs = [];
    for (const count of [20, 200]) {
      const made = await named(count);
      const { table, counts } = countedTable(made.table);
      await made.plan(table);
      costs.push(counts);
    }
    expect(costs[1]).toEqual(costs[0]);
  });

  test.each([3, 30])(
    "a group that names %d clusters reports one that is not registered, and only while it is not",
    async (count) => {
      const made = await named(count);
      expect((await made.group()).status.state).toBe("Complete");
      await made.setGroup({ maxConcurrent: "100%" }, undefined, { names: [...names(count), "new"] });
      await made.plan();
      expect((await made.group()).status).toMatchObject({
        state: "Degraded",
        conditions: [{ reason: "ClusterNotFound" }],
      });
      await made.addCluster("new", "all");
      await made.rollOut();
      made.advanceClock(3600);
      await made.plan();
      expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { ready: count + 1 } });
    },
  );
});
