/** A deletion that its cluster's silence interrupted: it goes on in its turn, or by itself where nobody gives turns. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SubjectState } from "#shared/fleet/rows/object-rows.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startTroubledWorker, type TroubledWorker } from "#test/support/troubled-worker.ts";

let worker: TroubledWorker;

beforeEach(async () => {
  worker = await startTroubledWorker();
});

afterEach(() => worker.stop());

function setSubject(state: SubjectState): Promise<void> {
  return worker.world.setSubject("web", { status: { state, conditions: [] } });
}

/** Syncs two objects, asks for their deletion and lets the cluster be silent while it is tried. */
async function interrupt(): Promise<void> {
  const { world, host } = worker;
  await world.assign("web", [namespace("shop"), configMap("shop/a")]);
  await world.work();
  await world.assignDelete("web");
  await host.setFaults("c1", { resets: {} });
  await world.work();
  expect(await world.phase("web")).toBe("Unreachable");
  await host.setFaults("c1", {});
  worker.reconnect();
}

async function look(): Promise<string | undefined> {
  worker.world.aheadMs += 700_000;
  await worker.world.work();
  return worker.world.phase("web");
}

test.each<SubjectState>(["Rolling", "Halted", "Stalled", "Deleting"])(
  "waits for its turn while the subject is %s, and looks again",
  async (state) => {
    await setSubject(state);
    await interrupt();
    expect(await look()).toBe("Reachable");
    expect(await look()).toBe("Reachable");
    expect(worker.members()).toEqual(["ConfigMap a", "Namespace shop"]);

    await worker.world.assignDelete("web");
    expect(await look()).not.toBe("Reachable");
    expect(worker.members()).not.toContain("ConfigMap a");
  },
);

test("goes on by itself when the rollout has ended without it", async () => {
  await setSubject("Deleting");
  await interrupt();
  expect(await look()).toBe("Reachable");
  await setSubject("Complete");
  expect(await look()).not.toBe("Reachable");
  expect(worker.members()).not.toContain("ConfigMap a");
});

test("goes on by itself when its subject is gone", async () => {
  await interrupt();
  expect(await look()).not.toBe("Reachable");
  expect(worker.members()).not.toContain("ConfigMap a");
});
