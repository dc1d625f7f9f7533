/** A cluster asks for fewer requests again and again: it does not occupy a worker, and is left alone as long as it asks. */

import { setImmediate as nextTick } from "node:timers/promises";
import type { ClusterFaults } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

const many = [namespace("shop"), ...Array.from({ length: 30 }, (_, index) => configMap(`shop/c${index}`))];
const changed = many.map((object) => ({ ...object, metadata: { ...object.metadata, labels: { is: "new" } } }));

/** @returns the milliseconds that the worker slept, which pass at once. */
async function sleptFor(faults: ClusterFaults): Promise<number> {
  await worker.world.assign("web", [...many, configMap("shop/gone")]);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  const begun = worker.world.aheadMs;
  const sleep = async (ms: number) => {
    worker.world.aheadMs += ms;
    await nextTick();
  };
  Object.assign(worker.world.clock, { sleep });
  await worker.world.assign("web", changed);
  worker.host.clearRequests();
  await worker.host.setFaults("c1", faults);
  await worker.world.work();
  return worker.world.aheadMs - begun;
}

test.each<[string, ClusterFaults, number]>([
  ["everything, for a moment", { throttle: { retryAfterSeconds: 1 } }, 5],
  ["everything, for long", { throttle: { retryAfterSeconds: 30 } }, 30],
  ["everything, for ever", { throttle: { retryAfterSeconds: 3600 } }, 600],
  ["deletions, for long", { throttle: { retryAfterSeconds: 30, methods: ["DELETE"] } }, 30],
  ["writes, for long", { throttle: { retryAfterSeconds: 30, methods: ["PATCH"], pathIncludes: "/configmaps" } }, 30],
])(
  "a cluster that refuses %s, occupies its worker for half a minute at most, and is tried again later",
  async (_what, faults, waitSeconds) => {
    expect(await sleptFor(faults)).toBeLessThanOrEqual(2 * 15_000);
    const { phase, at, nextAt = "" } = await worker.observed();
    expect([phase, (Date.parse(nextAt) - Date.parse(at)) / 1000]).toEqual(["Retrying", waitSeconds]);
    expect(worker.host.requests().length).toBeLessThan(2 * many.length);
    await worker.host.setFaults("c1", {});
    await worker.recover(changed);
  },
);
