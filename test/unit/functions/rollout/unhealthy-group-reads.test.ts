/** What a look at one cluster reads of a group in which many are not well: a page of them, and not all. */
import { describe, expect, test } from "vitest";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { begin, names, worldOf } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

/** All have their content; then so many of them are not well any more, and everybody was looked at. */
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

async function lookAt(made: PlannerWorld, cluster: string, seconds = 60): Promise<number> {
  const { table, counts } = countedTable(made.table);
  made.advanceClock(seconds);
  await made.plan(table, [cluster]);
  return counts.rowsRead;
}

const clusters = async (made: PlannerWorld) => (await made.group()).status.clusters;

describe.each(["Failed", "Unreachable"] as const)(
  "of a group of 260 clusters that are %s",
  { timeout: 60_000 },
  (phase) => {
    const state = phase === "Failed" ? "failed" : "unreachable";

    test("a look at one reads as much where 240 are as where 120 are, and says how many", async () => {
      const reads: number[] = [];
      for (const unhealthy of [120, 240]) {
        const made = await unhealthyGroup(unhealthy, phase);
        expect(await clusters(made)).toMatchObject({ selected: 260, [state]: unhealthy });
        reads.push(await lookAt(made, "c001"));
        expect((await made.group()).status).toMatchObject({
          state: "Degraded",
          clusters: { selected: 260, [state]: unhealthy },
        });
        expect((await made.group()).status.conditions[0]?.message).toContain("c000");
      }
      expect(reads[1]).toBe(reads[0]);
      expect(reads[1]).toBeLessThan(150);
    });

    test("a look at one behind the page writes nothing, and the next one reads no more", async () => {
      const made = await unhealthyGroup(240, phase);
      const read = await lookAt(made, "c001");
      const before = made.table.all();
      await made.plan(made.table, ["c200"]);
      expect(made.table.all()).toEqual(before);
      expect(await lookAt(made, "c001", 1)).toBe(read);
    });

    test("a look at one that finds a page of them where none were before counts all of them", async () => {
      const made = await unhealthyGroup(0, phase);
      for (const name of names(220)) await made.observe(name, phase);
      await made.plan(made.table, ["c001"]);
      expect(await clusters(made)).toMatchObject({ [state]: 220 });
    });

    test("a look at everybody puts the number right, and so does a look at one when they are few", async () => {
      const made = await unhealthyGroup(220, phase);
      for (const name of names(110)) await made.observe(name, "Ready");
      await lookAt(made, "c001");
      expect(await clusters(made)).toMatchObject({ [state]: 220 });
      await made.plan();
      expect(await clusters(made)).toMatchObject({ [state]: 110, ready: 150 });
      for (const name of names(220)) await made.observe(name, "Ready");
      await lookAt(made, "c001");
      expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { [state]: 0, ready: 260 } });
    });
  },
);

test("a still group reads of catch-ups that found no answer only those that ended a moment ago", {
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
    // They answered, and were found to be well by themselves: the index names nobody.
    for (const name of names(count, "n")) await made.observe(name, "Ready");
    made.advanceClock(3600);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
    reads.push(await lookAt(made, "own"));
  }
  expect(reads[1]).toBe(reads[0]);
});
