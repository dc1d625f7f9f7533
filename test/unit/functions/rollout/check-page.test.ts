import { expect, test } from "vitest";
import { ConflictError } from "#shared/base/errors.ts";
import type { Table } from "#shared/ports.ts";
import { ana, counting, worldOf } from "#test/support/planner-story.ts";

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

test("a reconcile creates no row for a Sync that is deleted at the same time", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  const { table } = made;
  const update = table.update.bind(table);
  table.update = async (write) => {
    const before = await made.sync("a");
    if (before !== undefined) await table.write([{ delete: { pk: before.pk, sk: before.sk } }]);
    return update(write);
  };
  await made.plan();
  expect(await made.sync("a")).toBeUndefined();
  expect((await made.sync("b"))?.reconcile).toBe(1);
});

test("a reconcile that meets another writer at every write goes on with the next call", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  made.sender.take();
  const update = async () => {
    made.advanceClock(10);
    throw new ConflictError("somebody else was first", { failed: [0] });
  };
  await made.plan({ ...counting(made.table).table, update });
  expect(made.rolloutState().jobs).toEqual([{ do: "check", number: 1, at: 0 }]);
  expect(made.sender.take()).toMatchObject([{ to: "rollout" }]);
  await made.plan();
  for (const name of ["a", "b"]) expect((await made.sync(name))?.reconcile, name).toBe(1);
});

test("a failure of the table is not taken for another writer, and the call is tried again", async () => {
  const made = await worldOf(["a"], {});
  const { table } = made;
  const fail = async () => {
    throw new Error("the table is away");
  };
  const unrendered: Table = {
    ...counting(table).table,
    write: (writes) =>
      writes.some((one) => "put" in one && one.put.type === "Rendering") ? fail() : table.write(writes),
  };
  await expect(made.plan(unrendered)).rejects.toThrow("the table is away");
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  await expect(made.plan({ ...counting(table).table, update: fail })).rejects.toThrow("the table is away");
  expect(made.rolloutState().jobs).toHaveLength(1);
});
