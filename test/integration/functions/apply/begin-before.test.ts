/** No worker begins what waits for a window or an uncordon; what has begun finishes, and drift is corrected. */
import { describe, expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { type ClientCall, isWrite, watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("the closing of a window, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  async function begin(): Promise<{ readonly world: WorkerWorld; readonly writes: () => number }> {
    const calls: ClientCall[] = [];
    const client = watchedClient(cluster.client, async (call) => {
      calls.push(call);
    });
    const world = await new WorkerWorld({ connect: async () => client, distrust() {} }).begin();
    return { world, writes: () => calls.filter(isWrite).length };
  }

  const pathOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;
  const objectsOf = (name: string, value = "1") => [namespace(name), configMap(`${name}/c`, { k: value })];
  const dataOf = async (name: string) => (await cluster.raw("GET", pathOf(name))).data;
  const closesIn = (world: WorkerWorld, seconds: number) => ({ beginBefore: later(world.clock.now(), seconds) });

  async function workAfter(world: WorkerWorld, seconds: number): Promise<void> {
    world.aheadMs += seconds * 1000;
    await world.work();
  }

  test("a worker that comes before it begins, and one that comes later writes nothing and reports nothing", async () => {
    const { world, writes } = await begin();
    await world.assign("close-late", objectsOf("close-late"), {}, closesIn(world, 60));
    await workAfter(world, 60);
    for (let check = 0; check < 3; check++) await workAfter(world, 600);
    expect(writes()).toBe(0);
    expect(await world.sync("close-late")).not.toHaveProperty("observed");
    await world.assign("close-late", objectsOf("close-late"), {}, closesIn(world, 60));
    await workAfter(world, 59);
    expect(await world.phase("close-late")).toBe("Ready");
  });

  test("a worker whose clock is ten minutes slow begins nothing that the planner has paused, and reports nothing", async () => {
    const { world, writes } = await begin();
    // By the planner's clock the window closed two minutes ago.
    await world.assign("close-slow", objectsOf("close-slow"), {}, closesIn(world, 480));
    await world.pause("close-slow", { reason: "its window closed", window: true });
    await workAfter(world, 0);
    await workAfter(world, 300);
    expect(writes()).toBe(0);
    expect(await world.sync("close-slow")).not.toHaveProperty("observed.applied");
  });

  test("a worker whose clock is ten minutes fast begins nothing shortly before the closing, and does so in the next opening", async () => {
    const { world, writes } = await begin();
    await world.assign("close-fast", objectsOf("close-fast"), {}, closesIn(world, 300));
    await workAfter(world, 600);
    expect(writes()).toBe(0);
    await world.assign("close-fast", objectsOf("close-fast"), {}, { beginBefore: later(world.clock.now(), 3600) });
    await workAfter(world, 0);
    expect(await world.phase("close-fast")).toBe("Ready");
  });

  test("a worker whose clock is behind the planner's begins a new assignment at once, and a delayed one at its time", async () => {
    const { world, writes } = await begin();
    await world.assign("at-once", objectsOf("at-once"));
    await world.assign("delayed", objectsOf("delayed"), {}, { startAt: later(world.clock.now(), 60) });
    await workAfter(world, -600);
    expect(await world.phase("at-once")).toBe("Ready");
    expect(await world.sync("delayed")).not.toHaveProperty("observed");
    await workAfter(world, 660);
    expect(await world.phase("delayed")).toBe("Ready");
    expect(writes()).toBeGreaterThan(0);
  });

  test("an attempt that began before it goes on after it", async () => {
    const { world } = await begin();
    const objects = [...objectsOf("close-begun"), deployment("close-begun/web")];
    await world.assign("close-begun", objects, {}, closesIn(world, 60));
    await world.work();
    expect(await world.phase("close-begun")).toBe("Verifying");
    await cluster.raw("DELETE", pathOf("close-begun"));
    await workAfter(world, 700);
    expect(await cluster.statusOf(pathOf("close-begun"))).toBe(200);
  });

  test("a deletion that came too late waits as well", async () => {
    const { world } = await begin();
    await world.assign("close-gone", objectsOf("close-gone"), {}, closesIn(world, 60));
    await world.work();
    await world.assignDelete("close-gone");
    await workAfter(world, 61);
    expect(await cluster.statusOf(pathOf("close-gone"))).toBe(200);
  });

  test("while an assignment waits for its window, the drift of what was applied before is corrected", async () => {
    const { world, writes } = await begin();
    await world.assign("close-drift", objectsOf("close-drift"));
    await world.work();
    await world.assign("close-drift", objectsOf("close-drift", "2"), {}, closesIn(world, 60));
    await workAfter(world, 700);
    expect(await dataOf("close-drift")).toEqual({ k: "1" });
    await world.pause("close-drift", { reason: "its window closed", window: true });
    const before = writes();
    await workAfter(world, 700);
    expect(writes()).toBe(before);
    await cluster.raw("PATCH", pathOf("close-drift"), { as: "merge-patch", body: { data: { k: "edited" } } });
    await workAfter(world, 700);
    expect(await dataOf("close-drift")).toEqual({ k: "1" });
    expect(await world.sync("close-drift")).toMatchObject({
      desired: { attempt: 2 },
      observed: { attempt: 1, phase: "Ready", drift: { corrected: true } },
    });
    await world.setFreezes({
      freezes: [{ name: "inc-1", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-1" }],
    });
    await cluster.raw("PATCH", pathOf("close-drift"), { as: "merge-patch", body: { data: { k: "edited" } } });
    await workAfter(world, 700);
    expect(await dataOf("close-drift")).toEqual({ k: "edited" });
    await world.setFreezes({});
    await world.assign("close-drift", objectsOf("close-drift", "2"), {}, closesIn(world, 60));
    await world.work();
    expect(await dataOf("close-drift")).toEqual({ k: "2" });
    expect(await world.phase("close-drift")).toBe("Ready");
  });

  test("while an attempt waits for an uncordon, the drift of what was applied before is corrected", async () => {
    const { world } = await begin();
    await world.assign("cordon-drift", objectsOf("cordon-drift"));
    await world.work();
    await world.assign("cordon-drift", objectsOf("cordon-drift", "2"));
    await world.pause("cordon-drift", { reason: "cordoned by ana: INC-1", cordon: true });
    await workAfter(world, 700);
    expect(await dataOf("cordon-drift")).toEqual({ k: "1" });
    await cluster.raw("PATCH", pathOf("cordon-drift"), { as: "merge-patch", body: { data: { k: "edited" } } });
    await workAfter(world, 700);
    expect(await dataOf("cordon-drift")).toEqual({ k: "1" });
    expect(await world.sync("cordon-drift")).toMatchObject({ desired: { attempt: 2 }, observed: { attempt: 1 } });
  });
});
