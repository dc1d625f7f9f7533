/** How many waiting targets of a stage run one call checks, and what the check costs. */

import { describe, expect, test } from "vitest";
import { heldIn } from "#shared/fleet/rollout/holding.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { begin, counting, names, ownPaths, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const paths = (made: PlannerWorld) => made.rows<RenderingRow>("Rendering").map(({ path }) => path);

/**
 * The rollout before has halted, and all its clusters but the first are still applying: the next rollout waits for
 * them.
 */
async function giveWay(clusters: readonly string[], templates: readonly unknown[] = web): Promise<PlannerWorld> {
  const made = await worldOf(clusters, { maxConcurrent: "100%" }, templates);
  await made.rollOut();
  await revise(made, "bbb");
  for (const cluster of clusters) await made.observe(cluster, "Applying");
  await made.finish(clusters[0] ?? "", "Failed");
  await made.plan();
  await made.setSource("ccc");
  await made.plan();
  return made;
}

describe("targets that wait for an attempt of an earlier rollout", () => {
  test("a worker's report makes the planner read a few waiting targets at a time, however many they are", async () => {
    const reads = async (count: number) => {
      const made = await giveWay(names(count));
      await begin(made);
      expect(heldIn(made.stageRun("all"), "worker")).toHaveLength(count - 1);
      const counted = counting(made.table);
      await made.plan(counted.table, ["c000"]);
      return counted.read();
    };
    expect(await reads(40)).toBe(await reads(20));
  });

  test("a check of the whole group reads every waiting target", async () => {
    const made = await giveWay(names(40));
    await begin(made);
    await made.observe("c038", "Verifying");
    await made.plan();
    expect((await made.sync("c038"))?.desired.revision).toBe("main@sha1:ccc");
    expect(heldIn(made.stageRun("all"), "worker")).toHaveLength(38);
  });

  test("targets that wait for an attempt keep the planner from asking for no other rendering when a renderer is done", async () => {
    const made = await worldOf(names(14), { maxConcurrent: 3 }, ownPaths);
    await made.rollOut();
    await revise(made, "bbb");
    for (const cluster of ["c001", "c002"]) await made.observe(cluster, "Applying");
    await made.finish("c000", "Failed");
    await made.plan();
    await made.setSource("ccc");
    await made.plan();
    await made.renderAll(undefined, ({ path }) => ["clusters/c001", "clusters/c002"].includes(path));
    await made.plan(made.table, []);
    expect(heldIn(made.stageRun("all"), "worker")).toEqual([1, 2]);
    expect(heldIn(made.stageRun("all"), "rendering")).toHaveLength(7);
    const [{ next }, asked] = [made.stageRun("all"), paths(made).length];
    await made.plan(made.table, []);
    expect(made.stageRun("all").next).toBeGreaterThan(next);
    expect(paths(made).length).toBeGreaterThan(asked);
  });
});

test("targets whose renderings hang are not all read while no slot is free", async () => {
  const reads = async (hanging: number) => {
    const made = await worldOf(names(hanging + 4), { maxConcurrent: 2 }, ownPaths);
    const slow = new Set(names(hanging).map((name) => `clusters/${name}`));
    for (let check = 0; check < 20; check++) {
      await made.plan();
      await made.renderAll(undefined, ({ path }) => !slow.has(path));
    }
    await made.plan();
    expect(made.slots()).toHaveLength(2);
    expect(heldIn(made.stageRun("all"), "rendering").length).toBeGreaterThanOrEqual(hanging);
    const counted = counting(made.table);
    await made.plan(counted.table);
    return counted.read();
  };
  expect(await reads(40)).toBe(await reads(20));
});

test("renderings that were lost are asked for again, and no others with them", async () => {
  const made = await worldOf(names(30), { maxConcurrent: 1 }, ownPaths);
  await made.plan();
  const asked = paths(made);
  for (const { pk, sk } of made.rows<RenderingRow>("Rendering")) await made.table.write([{ delete: { pk, sk } }]);
  await made.plan();
  expect(paths(made).sort()).toEqual([...asked].sort());
});
