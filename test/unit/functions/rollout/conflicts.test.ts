/** The planner's call when another writer writes first. */
import { expect, test } from "vitest";
import { ConflictError } from "#shared/base/errors.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table, Write } from "#shared/ports.ts";
import { begin, names, ownPaths, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** The table; it refuses a write when the test says so. */
function refusing(made: PlannerWorld, isRefused: (writes: readonly Write[]) => Promise<boolean>): Table {
  const { table } = made;
  return {
    get: (key) => table.get(key),
    getMany: (desired, reading) => table.getMany(desired, reading),
    query: (query) => table.query(query),
    queryIndex: (query) => table.queryIndex(query),
    async write(writes) {
      if (await isRefused(writes)) throw new ConflictError("somebody else was first", { failed: [0] });
      return table.write(writes);
    },
    update: (write) => table.update(write),
  };
}

test("a call that another writer interrupts checks the same clusters again within that call", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await begin(made);
  for (const cluster of ["a", "b"]) await made.finish(cluster);
  let refused = 0;
  await made.plan(refusing(made, async () => refused++ === 0));
  expect(refused).toBeGreaterThan(1);
  expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded" });
  expect(made.slots()).toEqual([]);
});

function renderingIn(write: Write): readonly RenderingRow[] {
  return "put" in write && write.put.type === "Rendering" ? [write.put as RenderingRow] : [];
}

test("a group waits for all renderings that another owner asks for at the same time, however many they are", async () => {
  const made = await worldOf(names(60), { maxConcurrent: "100%" }, ownPaths);
  let others = 0;
  const table = refusing(made, async (writes) => {
    const asked = writes.flatMap(renderingIn);
    const waiting: RenderingRow["waiting"] = [{ namespace: "shop", kind: "Sync", name: "other" }];
    const rows: readonly RenderingRow[] = asked.map((row) => ({ ...row, waiting }));
    await made.table.write(rows.map((put) => ({ put })));
    others += asked.length;
    return asked.length > 0;
  });
  await made.plan(table);
  expect(others).toBeGreaterThan(20);
  const requested = made.sender.take().flatMap((message) => (message.to === "render" ? [message.input] : []));
  expect(new Set(requested).size).toBe(others);
});
