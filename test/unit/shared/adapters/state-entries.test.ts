import { expect, test } from "vitest";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { owner } from "#test/support/planner-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

test("an entry that names another cluster or Sync than its row is none, whoever may write the row", async () => {
  const table = new MemoryTable();
  const entry = (cluster: string, name: string) => ({ stateSk: stateIndex.sk("Ready", { cluster, name }) });
  await table.write([
    { put: { ...syncRowOf("s1"), ...entry("s1", "web.app") } },
    { put: { ...syncRowOf("s2"), ...entry("h1", "web.app") } },
    { put: { ...syncRowOf("s3"), ...entry("s3", "web.other") } },
    { put: { ...syncRowOf("s4"), stateSk: "Ready" } },
  ]);
  expect(await stateEntries(owner, table)).toEqual([{ state: "Ready", cluster: "s1", sync: "web.app" }]);
});
