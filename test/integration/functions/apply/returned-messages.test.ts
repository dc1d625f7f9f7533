/** A worker that will check again lets its own message return later, instead of sending another message. */
import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("the message that started a worker on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  async function begin(name: string): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, [namespace(name), deployment(`${name}/web`)]);
    return world;
  }

  const toApply = (world: WorkerWorld) => world.sender.take().filter(({ to }) => to === "apply");

  /** Seconds from now until the Sync is due for a check. */
  async function untilNextCheck(world: WorkerWorld, name: string): Promise<number> {
    const nextAt = (await world.sync(name))?.observed?.nextAt ?? "";
    return Math.ceil((Date.parse(nextAt) - world.clock.now().getTime()) / 1000);
  }

  test("the message returns when the next check is due, but only twice; then another message is sent", async () => {
    const world = await begin("back-twice");
    for (const receives of [1, 2]) {
      const after = await world.work({ receives });
      expect(await world.phase("back-twice")).toBe("Verifying");
      expect(after).toBeGreaterThan(0);
      expect(Math.abs((after ?? 0) - (await untilNextCheck(world, "back-twice")))).toBeLessThanOrEqual(1);
      expect(toApply(world)).toEqual([]);
      world.aheadMs += 60_000;
    }
    expect(await world.work({ receives: 3 })).toBeUndefined();
    expect(toApply(world)).toEqual([{ to: "apply", cluster: "c1", delaySeconds: expect.any(Number) }]);
  });

  test("the message is deleted when no check is due", async () => {
    const world = await begin("back-never");
    await world.assign("back-never", [namespace("back-never"), configMap("back-never/c")]);
    expect(await world.work({ receives: 1 })).toBeUndefined();
    expect(await world.phase("back-never")).toBe("Ready");
    expect(toApply(world)).toEqual([]);
    expect(await world.work({ receives: 1 })).toBeUndefined();
  });

  test("the message returns at once if Syncs had no turn", async () => {
    const world = await begin("back-at-once");
    await world.assign("back-later", [namespace("back-later")]);
    const connector: ClusterConnector = {
      async connect() {
        world.aheadMs += 295_000;
        return cluster.client;
      },
      distrust() {},
    };
    expect(await world.work({ connector, receives: 1 })).toBe(0);
  });

  test("the message returns for the first of several checks, and new messages are sent for the others", async () => {
    const world = await begin("back-first");
    await world.assign("back-second", [namespace("back-second"), deployment("back-second/web")]);
    await world.work({ receives: 1 });
    world.sender.take();
    // The worker checks one of the Syncs more rarely by now.
    for (let check = 0; check < 6; check++) {
      world.aheadMs += 60_000;
      await world.work({ receives: 1 });
      world.sender.take();
    }
    await world.assign("back-second", [namespace("back-second"), deployment("back-second/other")]);
    world.aheadMs += 60_000;
    const after = await world.work({ receives: 1 });
    const sent = toApply(world);
    const checks = [await untilNextCheck(world, "back-first"), await untilNextCheck(world, "back-second")].sort(
      (a, b) => a - b,
    );
    expect(checks[1]).toBeGreaterThan((checks[0] ?? 0) + 1);
    expect(Math.abs((after ?? 0) - (checks[0] ?? 0))).toBeLessThanOrEqual(1);
    expect(sent).toHaveLength(1);
    expect(Math.abs((sent[0]?.delaySeconds ?? 0) - (checks[1] ?? 0))).toBeLessThanOrEqual(1);
  });

  test("the message is deleted before a long wait, and another message is sent", async () => {
    const world = await begin("back-long");
    let after: number | undefined;
    for (let tries = 0; tries < 12; tries++) {
      world.aheadMs += 600_000;
      const connector: ClusterConnector = { connect: () => Promise.reject(new TypeError("a defect")), distrust() {} };
      after = await world.work({ receives: 1, connector });
      const wait = await untilNextCheck(world, "back-long");
      const sent = toApply(world);
      if (wait > 62) expect({ after, sent: sent.length }).toEqual({ after: undefined, sent: 1 });
      if (wait < 58) expect({ after: after !== undefined, sent: sent.length }).toEqual({ after: true, sent: 0 });
    }
    expect(after).toBeUndefined();
  });
});
