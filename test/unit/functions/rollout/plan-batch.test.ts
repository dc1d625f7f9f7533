import { expect, test } from "vitest";
import { planBatch } from "#functions/rollout/plan-batch.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import { names, worldOf } from "#test/support/planner-story.ts";
import { silentLog } from "#test/support/planner-world.ts";

test("subjects that take all the time they get leave as much to those behind them", async () => {
  const made = await worldOf(["a"], {});
  const row = await made.group();
  const subjects = names(10, "g").map((name): Subject => ({ namespace: "shop", kind: "SyncGroup", name }));
  for (const { name } of subjects) {
    const group: SyncGroupRow = { ...row, ...keys.object("shop", "SyncGroup", name), name, uid: name };
    await made.table.write([{ put: group }]);
  }
  const read = new Set<string>();
  // Everything takes time, and nothing succeeds.
  const table: Table = {
    get: (key) => made.table.get(key),
    update: (write) => made.table.update(write),
    async getMany(wanted, reading) {
      made.advanceClock(0.2);
      for (const key of wanted) read.add(keyText(key));
      return made.table.getMany(wanted, reading);
    },
    query: (query) => made.table.query(query),
    queryIndex: (query) => made.table.queryIndex(query),
    async write() {
      throw new ConflictError("somebody else was first", { failed: [0] });
    },
  };
  const ports = {
    ...{ table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog, installation: "test" },
    clock: { now: () => made.now },
  };
  const messages = subjects.map((subject) => ({ to: "rollout" as const, subject, clusters: [] }));
  expect(await planBatch(messages, 10_000, ports)).toEqual([]);
  expect(subjects.filter((subject) => !read.has(keyText(keys.unit(subject))))).toEqual([]);
  expect(made.sender.take()).toHaveLength(10);
});
