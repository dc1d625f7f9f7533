/** A worker meets rows that a newer version wrote before its deployment was rolled back. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Log } from "#shared/ports.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { silentLog } from "#test/support/planner-world.ts";

const worker = forEachTest(startPatientWorker);

async function makeNewer(key: RowKey): Promise<void> {
  await worker.world.table.write([{ update: key, set: { schema: newestRowSchema + 1 } }]);
}

function stored(key: RowKey): Row | undefined {
  return worker.world.table.all().find((row) => keyText(row) === keyText(key));
}

/** Two Syncs that are due. */
async function assigned(): Promise<void> {
  await worker.world.assign("a", [namespace("of-a"), configMap("of-a/c")]);
  await worker.world.assign("b", [namespace("of-b"), configMap("of-b/c")]);
}

test("a Sync that cannot be read is left alone, and the other Syncs of its cluster have their turns", async () => {
  await assigned();
  const key = keys.sync("c1", "tests", "a");
  await makeNewer(key);
  const before = stored(key);
  const errors: unknown[] = [];
  const log: Log = { ...silentLog, error: (message, fields) => errors.push({ message, ...fields }) };
  await worker.world.work({ log });
  expect(await worker.world.phase("b")).toBe("Ready");
  expect(errors).toEqual([
    {
      message: expect.stringContaining(`the row ${keyText(key)} has schema 4`),
      code: "NewerRow",
      cluster: "c1",
      rows: 1,
    },
  ]);
  expect(stored(key)).toEqual(before);
  expect(worker.members()).toEqual(["ConfigMap c", "Namespace of-b"]);
  expect((await worker.world.lease())?.owner).toBeUndefined();
});

test("the worker does nothing for an owner that it cannot read, because that owner may be suspended", async () => {
  await assigned();
  await worker.world.setOwner("a", {});
  await makeNewer(keys.object("tests", "Sync", "a"));
  await worker.world.work();
  expect(await worker.world.phase("a")).toBeUndefined();
  expect(await worker.world.phase("b")).toBe("Ready");
  expect(worker.members()).toEqual(["ConfigMap c", "Namespace of-b"]);
});

test("the worker does nothing on a Cluster that it cannot read, and releases its lease", async () => {
  await assigned();
  await makeNewer(keys.cluster("c1"));
  const before = worker.world.table.all().filter(({ sk }) => sk !== "LEASE");
  await worker.world.work();
  expect(worker.world.table.all().filter(({ sk }) => sk !== "LEASE")).toEqual(before);
  expect(worker.members()).toEqual([]);
  expect((await worker.world.lease())?.owner).toBeUndefined();
  expect(worker.world.sender.take()).toEqual([]);
});

test("a freeze that cannot be read stops all writes, but no check", async () => {
  const { world } = worker;
  await world.assign("a", [namespace("of-a"), configMap("of-a/c")]);
  await world.work();
  await world.setFreezes({
    freezes: [{ name: "inc-1", by: "ana", at: world.clock.now().toISOString(), reason: "INC-1" }],
  });
  await world.assign("b", [namespace("of-b")]);
  await world.work();
  expect(await world.sync("b")).toHaveProperty("held");
  await makeNewer(keys.freezeState);
  worker.host.clearRequests();
  world.aheadMs += 700_000;
  await world.work();
  expect(await world.phase("a")).toBe("Ready");
  expect(worker.host.requests().some(({ path }) => path.includes("/configmaps"))).toBe(true);
  expect(worker.members()).toEqual(["ConfigMap c", "Namespace of-a"]);
  expect((await world.lease())?.owner).toBeUndefined();
});

test("a lease that a newer version left behind is taken over, with a higher fence", async () => {
  await assigned();
  const key = keys.lease("c1");
  await worker.world.table.write([
    { put: { ...key, type: "Lease", schema: newestRowSchema + 1, version: 7, fence: 7, desired: 0 } as Row },
  ]);
  await worker.world.work();
  expect(await worker.world.phase("a")).toBe("Ready");
  expect(await worker.world.lease()).toMatchObject({ schema: rowSchema, fence: 8 });
});
