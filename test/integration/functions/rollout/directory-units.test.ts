/**
 * The units that DynamoDB counts when a label changes somewhere: the same for a small group of a small fleet and of a
 * large one.
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

async function rolloutStatesOf(work: () => Promise<void>): Promise<number> {
  const before = emulated.proxy.capacity().readUnits;
  await work();
  return emulated.proxy.capacity().readUnits - before;
}

test("a group of one cluster reads a few units more, whatever the size of the fleet", {
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
  const idle = await rolloutStatesOf(() => group.call());
  await group.setValues(others.slice(0, 1), {}, { ring: "another" });
  // The step once more behind the one that notes the versions, the entry, and the ClusterValues, of which there are none.
  expect((await rolloutStatesOf(() => group.call())) - idle).toBeLessThan(8);
  expect(await rolloutStatesOf(() => group.call())).toBe(idle);
});
