/** No worker begins an assignment before its start time, because a group spreads the starts over a time. */
import { expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startClusterWorker);
const before = [namespace("shop"), configMap("shop/a")];
const after = [namespace("shop"), configMap("shop/a"), configMap("shop/b")];

const writes = () => worker.host.requests().filter(({ method }) => method !== "GET");
const startAt = () => later(worker.world.clock.now(), 600);

async function check(seconds: number): Promise<void> {
  worker.world.aheadMs += seconds * 1000;
  await worker.world.work();
}

test("an assignment with a start time begins at that time", async () => {
  const { world } = worker;
  await world.assign("web", before, {}, { startAt: startAt() });
  for (let minute = 0; minute < 9; minute++) await check(60);
  expect(writes()).toEqual([]);
  expect(await world.sync("web")).not.toHaveProperty("observed");
  await check(60);
  expect(await world.phase("web")).toBe("Ready");
});

test("the first assignment for another cluster of the same name waits for its time, too", async () => {
  const { world } = worker;
  await world.assign("web", before);
  await world.work();
  await world.assign("web", after, {}, { startAt: startAt() });
  const row = await world.sync("web");
  if (row?.observed === undefined) throw new Error("it was seen");
  const other = { ...row, version: row.version + 1, observed: { ...row.observed, clusterUid: "uid-of-another" } };
  await world.table.write([{ put: other }]);
  worker.host.clearRequests();
  for (let minute = 0; minute < 9; minute++) await check(60);
  expect(writes()).toEqual([]);
});
