import { expect, test } from "vitest";
import { ana, worldOf } from "#test/support/planner-story.ts";

test("a reconcile reaches a Sync that its worker writes at the same time", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  const { table } = made;
  const update = table.update.bind(table);
  let conflicts = 0;
  table.update = async (write) => {
    if (conflicts === 0) {
      conflicts++;
      await made.observe("a", "Ready");
    }
    return update(write);
  };
  await made.plan();
  for (const name of ["a", "b"]) expect((await made.sync(name))?.reconcile, name).toBe(1);
  expect((await made.sync("a"))?.observed?.handledReconcile).toBeUndefined();
});
