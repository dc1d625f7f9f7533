/** The reads of a call for one cluster, in a group with many unhealthy clusters: one page of them, and not all. */
import { describe, expect, test } from "vitest";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { begin, names, worldOf } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

/** All clusters have their rollout. Then some become unhealthy, and one call checks the whole group. */
async function unhealthyGroup(unhealthy: number, phase: "Failed" | "Unreachable"): Promise<PlannerWorld> {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 1000 }), blobs: new MemoryBlobStore() });
  for (const name of names(260)) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({ maxConcurrent: "100%" });
  await made.rollOut();
  for (const name of names(unhealthy)) await made.observe(name, phase);
  made.advanceClock(3600);
  await made.plan();
  return made;
}

async function readsOfCall(made: PlannerWorld, cluster: string, seconds = 60): Promise<number> {
  const { table, counts } = countedTable(made.table);
  made.advanceClock(seconds);
  await made.plan(table, [cluster]);
  return counts.rowsRead;
}

const clusters = async (made: PlannerWorld) => (await made.group()).status.clusters;

describe.each(["Failed", "Unreachable"] as const)(
  "a group of 260 clusters of which many are %s",
  { timeout: 60_000 },
  (phase) => {
    const state = phase === "Failed" ? "failed" : "unreachable";

    test("a call for one cluster reads as much with 240 unhealthy clusters as with 120, and counts them all", async () => {
      const reads: number[] = [];
      for (const unhealthy of [120, 240]) {
        const made = await unhealthyGroup(unhealthy, phase);
        expect(await clusters(made)).toMatchObject({ selected: 260, [state]: unhealthy });
        reads.push(await readsOfCall(made, "c001"));
        expect((await made.group()).status).toMatchObject({
          state: "Degraded",
          clusters: { selected: 260, [state]: unhealthy },
        });
        expect((await made.group()).status.conditions[0]?.message).toContain("c000");
      }
      expect(reads[1]).toBe(reads[0]);
      expect(reads[1]).toBeLessThan(150);
    });

    test("a call for a cluster behind the first page writes nothing, and the next call reads no more", async () => {
      const made = await unhealthyGroup(240, phase);
      const read = await readsOfCall(made, "c001");
      const before = made.table.all();
      await made.plan(made.table, ["c200"]);
      expect(made.table.all()).toEqual(before);
      expect(await readsOfCall(made, "c001", 1)).toBe(read);
    });

    test("a call for one cluster that finds a page of newly unhealthy clusters counts all of them", async () => {
      const made = await unhealthyGroup(0, phase);
      for (const name of names(220)) await made.observe(name, phase);
      await made.plan(made.table, ["c001"]);
      expect(await clusters(made)).toMatchObject({ [state]: 220 });
    });

    test("a call for all clusters corrects the count, and so does a call for one when few are unhealthy", async () => {
      const made = await unhealthyGroup(220, phase);
      for (const name of names(110)) await made.observe(name, "Ready");
      await readsOfCall(made, "c001");
      expect(await clusters(made)).toMatchObject({ [state]: 220 });
      await made.plan();
      expect(await clusters(made)).toMatchObject({ [state]: 110, ready: 150 });
      for (const name of names(220)) await made.observe(name, "Ready");
      await readsOfCall(made, "c001");
      expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { [state]: 0, ready: 260 } });
    });
  },
);

test("an idle group reads only those unreachable catch-ups that ended a moment ago", {
  timeout: 60_000,
}, async () => {
  const reads: number[] = [];
  for (const count of [10, 200]) {
    const made = await worldOf(["own"], { maxConcurrent: "100%" });
    await made.rollOut();
    for (const name of names(count, "n")) await made.addCluster(name, "all");
    for (let turn = 0; turn < 10; turn++) {
      await begin(made);
      for (const { cluster } of made.slots()) await made.finish(cluster, "Unreachable");
      await made.plan();
    }
    expect(made.rolloutState().catchUps).toMatchObject({ away: count, waiting: 0, changing: 0 });
    // The clusters answered, and were healthy by themselves: the index names none of them.
    for (const name of names(count, "n")) await made.observe(name, "Ready");
    made.advanceClock(3600);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
    reads.push(await readsOfCall(made, "own"));
  }
  expect(reads[1]).toBe(reads[0]);
});
