/** An attempt that was interrupted by its cluster's silence goes on only when the planner starts it again. */
import { expect, test } from "vitest";
import type { OwnerState } from "#shared/fleet/rows/object-rows.ts";
import { configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { namesOf, startClusterWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startClusterWorker);
const objects = [namespace("shop"), configMap("shop/a")];

async function silent(): Promise<void> {
  await worker.host.setFaults("c1", { resets: {} });
  worker.world.aheadMs += 700_000;
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Unreachable");
  await worker.host.setFaults("c1", {});
  worker.reconnect();
  worker.host.clearRequests();
}

async function check(): Promise<string | undefined> {
  worker.world.aheadMs += 700_000;
  await worker.world.work();
  return worker.world.phase("web");
}

const writes = () => worker.host.requests().filter(({ method }) => method !== "GET");

test.each<OwnerState | undefined>(["Rolling", "Halted", "Stalled", "Deleting", "Complete", undefined])(
  "a deletion waits for its turn after the cluster was silent, while its owner is %s",
  async (state) => {
    const { world } = worker;
    if (state !== undefined) await world.setOwner("web", { status: { state, conditions: [] } });
    await world.assign("web", objects);
    await world.work();
    await world.assignDelete("web");
    await silent();
    for (let time = 0; time < 3; time++) expect(await check()).toBe("Reachable");
    expect(writes()).toEqual([]);
    expect(worker.members()).toEqual(["ConfigMap a", "Namespace shop"]);

    await world.assignDelete("web");
    expect(await check()).not.toBe("Reachable");
    expect(worker.members()).not.toContain("ConfigMap a");
  },
);

test("an attempt that was applied and never ready waits for the planner after the cluster was silent", async () => {
  const waiting = [...objects, deployment("shop/web")];
  await worker.world.assign("web", waiting);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Verifying");
  await silent();
  for (let time = 0; time < 3; time++) expect(await check()).toBe("Reachable");
  expect(writes()).toEqual([]);
  await worker.world.assign("web", waiting);
  expect(await check()).toBe("Verifying");
});

test("a Sync that was ready is checked when its cluster answers again", async () => {
  await worker.world.assign("web", objects);
  await worker.world.work();
  await silent();
  expect(await check()).toBe("Ready");
  expect(worker.members()).toEqual(namesOf(objects));
});
