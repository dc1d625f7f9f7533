/** What the planner reads and keeps does not grow with what has nothing to do with it: counted at the table. */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { ana, begin, names, ownPaths, worldOf } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

/** A group whose content is everywhere, in a table with pages as large as DynamoDB's. */
async function settledWorld(clusters: number, templates: number): Promise<PlannerWorld> {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 1000 }), blobs: new MemoryBlobStore() });
  for (const name of names(clusters)) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup(
    { maxConcurrent: "100%" },
    names(templates, "t").map((name) => ({ name, source: "app" })),
  );
  await made.rollOut();
  return made;
}

describe("clusters that join a first leg one by one", () => {
  test("make its row no longer, and get their turn each", async () => {
    const made = await worldOf(["c000"], { maxConcurrent: 1 }, ownPaths);
    await begin(made);
    for (const name of names(12, "n")) {
      await made.addCluster(name, "all");
      await made.plan();
    }
    expect(made.leg("all")).toMatchObject({ size: 13, pages: [{ first: 0 }], counts: { Assigned: 1 } });
    await made.rollOut();
    expect(made.leg("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 13 } });
  });
});

describe("a deletion", () => {
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
    "by %s reads as much for each cluster, in steps of one size",
    async (cascade) => {
      const few = await costOf(40, cascade);
      const many = await costOf(120, cascade);
      expect(many.rowsRead / 120).toBeLessThanOrEqual((1.1 * few.rowsRead) / 40);
      expect(many.longestStep).toBeLessThanOrEqual(few.longestStep + 1);
    },
  );
});
