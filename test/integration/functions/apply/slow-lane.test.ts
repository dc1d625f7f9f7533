/** Clusters that are slow, silent or failing leave the common lane at once, and are worked on in the slow one. */

import type { ClusterFaults } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

const objects = (value: string) => [namespace("shop"), configMap("shop/c", { value })];
const handedOn = { to: "applySlow", cluster: "c1" };
const toWorkers = () => worker.world.sender.take().filter(({ to }) => to === "apply" || to === "applySlow");

/** Makes a Sync that is ready and has another assignment. */
async function begin(): Promise<void> {
  await worker.world.assign("web", objects("1"));
  await worker.world.work({ lane: "common" });
  expect(await worker.world.phase("web")).toBe("Ready");
  await worker.world.assign("web", objects("2"));
  worker.world.sender.take();
  worker.host.clearRequests();
}

test.each<[string, ClusterFaults]>([
  ["answers after 27 s", { latency: { ms: 27_000 } }],
  ["never answers", { latency: { ms: 600_000 } }],
  ["asks for half a minute each time", { throttle: { retryAfterSeconds: 30 } }],
])(
  "a cluster that %s is handed to the slow lane, and its Syncs get no new observation before",
  async (_what, faults) => {
    await begin();
    const before = await worker.observed();
    await worker.host.setFaults("c1", faults);
    expect(await worker.world.work({ lane: "common", receives: 1 })).toBeUndefined();
    expect(toWorkers()).toEqual([handedOn]);
    expect(await worker.observed()).toEqual(before);
    expect(await worker.world.lease()).not.toHaveProperty("owner");

    // From then on workers of the common lane hand on its messages, and send no request to the cluster.
    await worker.host.setFaults("c1", {});
    worker.host.clearRequests();
    expect(await worker.world.work({ lane: "common", receives: 1 })).toBeUndefined();
    expect(toWorkers()).toEqual([handedOn]);
    expect(worker.host.requests()).toEqual([]);

    await worker.world.work({ lane: "slow", receives: 1 });
    expect(await worker.observed()).toMatchObject({ phase: "Ready", attempt: 2 });
  },
);

test("a cluster that fails every request keeps its place only for a few tries, and recovers by itself", async () => {
  await begin();
  await worker.host.setFaults("c1", { errors: { status: 503 } });
  await worker.world.work({ lane: "common" });
  // The worker sends at most two requests, each with four retries.
  expect(worker.host.requests().length).toBeLessThanOrEqual(2 * 5);
  expect(await worker.world.lease()).not.toHaveProperty("owner");
  expect(toWorkers().length).toBe(1);
  await worker.host.setFaults("c1", {});
  await worker.recover(objects("2"));
});

test("a cluster that answers slowly is worked on in the slow lane until its work is done", async () => {
  await begin();
  await worker.host.setFaults("c1", { latency: { ms: 2_100 } });
  await worker.world.work({ lane: "common" });
  expect(toWorkers()).toEqual([handedOn]);
  await worker.world.work({ lane: "slow" });
  expect(await worker.observed()).toMatchObject({ phase: "Ready", attempt: 2 });
});

test("a cluster that was slow is worked on in the common lane again ten minutes later", async () => {
  await begin();
  await worker.host.setFaults("c1", { throttle: { retryAfterSeconds: 30 } });
  await worker.world.work({ lane: "common" });
  await worker.host.setFaults("c1", {});
  worker.world.sender.take();
  worker.world.aheadMs += 601_000;
  await worker.world.work({ lane: "common" });
  expect(await worker.observed()).toMatchObject({ phase: "Ready", attempt: 2 });
  expect(toWorkers()).toEqual([]);
});

test("a cluster whose work takes longer than its budget goes on in the slow lane, although it answers", async () => {
  await worker.world.assign("first", [namespace("one")]);
  await worker.world.assign("second", [namespace("two")]);
  let asked = 0;
  worker.host.onRequest(() => {
    asked += 1;
    // Each answer takes a second by the worker's clock.
    worker.world.aheadMs += 1_000;
  });
  while (!toWorkers().some(({ to }) => to === "applySlow")) await worker.world.work({ lane: "common" });
  expect(asked).toBeGreaterThan(0);
  expect(await worker.world.lease()).toMatchObject({ use: { slowUntil: expect.any(String) } });
  await worker.world.work({ lane: "slow" });
  expect([await worker.world.phase("first"), await worker.world.phase("second")]).toEqual(["Ready", "Ready"]);
});
