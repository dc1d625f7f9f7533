/**
 * The read units that DynamoDB counts for a small group when a label of another cluster changes: as many in a large fleet
 * as in a small one.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { names } from "#test/support/planner-story.ts";

let emulated: EmulatedClients;
let table: DynamoTable;

beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 11, capacity: "measured" });
  const deployed = only(readPlan(await synthesize()).tables, "table");
  await createTable(emulated.aws.dynamo, deployed);
  table = new DynamoTable(emulated.aws.dynamo, deployed.name);
});
afterAll(() => emulated.stop());

async function readUnitsOf(work: () => Promise<void>): Promise<number> {
  const before = emulated.proxy.capacity().readUnits;
  await work();
  return emulated.proxy.capacity().readUnits - before;
}

test("a group of one cluster uses fewer than 8 more read units when another of 1,000 clusters gets a label", {
  timeout: 120_000,
}, async () => {
  const shape = {
    name: "web",
    templates: 1,
    maxConcurrent: "100%",
    clusters: { selector: { matchLabels: { ring: "own" } } },
  };
  const group = new PlannedGroup(shape, { table, blobs: new MemoryBlobStore() });
  const others = names(1000);
  await group.create([...others, "own"]);
  await group.setValues(["own"], {}, { ring: "own" });
  await group.rollOut("one", group.call);
  for (let call = 0; call < 2; call++) {
    group.anHourLater();
    await group.call();
  }
  const idle = await readUnitsOf(() => group.call());
  await group.setValues(others.slice(0, 1), {}, { ring: "another" });
  // The planner takes one step more after the one that notes the versions. It reads the entry, and finds no ClusterValues.
  expect((await readUnitsOf(() => group.call())) - idle).toBeLessThan(8);
  expect(await readUnitsOf(() => group.call())).toBe(idle);
});
