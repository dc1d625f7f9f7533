/** A `reconcile` that a check could not answer is answered by the first check that can. */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { valueAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const freeze = { name: "incident", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-1" };

describe.each(clusterTargets)("a reconcile of a Sync that may not be worked on, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const webOf = (name: string) => `/apis/apps/v1/namespaces/${name}/deployments/web`;
  const replicasOf = async (name: string) => valueAt(await cluster.raw("GET", webOf(name)), "spec", "replicas");

  /** A client of a cluster that refuses connections. */
  const away = watchedClient(
    new Proxy({} as never, { get: (_, method) => (method === "then" ? undefined : async () => {}) }),
    async () => {
      const facts = { message: "connect ECONNREFUSED", causes: [], code: "ECONNREFUSED" };
      throw new KubeError({ method: "GET", path: "/", secret: false }, facts);
    },
  );

  async function leftAlone(name: string): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, [namespace(name), deployment(`${name}/web`)]);
    await world.work();
    for (let round = 0; round < 6; round++) {
      const scale = { spec: { replicas: 10 + round } };
      await cluster.raw("PATCH", `${webOf(name)}/scale?fieldManager=hpa`, { as: "merge-patch", body: scale });
      await check(world);
    }
    expect(await replicasOf(name)).toBe(15);
    return world;
  }

  async function ask(world: WorkerWorld, name: string): Promise<void> {
    const row = await world.sync(name);
    if (row === undefined) throw new Error("it was assigned");
    const asked: SyncRow = { ...row, version: row.version + 1, reconcile: 1 };
    await world.table.write([{ put: asked }]);
    world.aheadMs += 5_000;
  }

  async function check(world: WorkerWorld): Promise<void> {
    world.aheadMs += 700_000;
    await world.work();
  }

  async function answered(world: WorkerWorld, name: string): Promise<void> {
    expect(await replicasOf(name)).toBe(15);
    await check(world);
    expect(await replicasOf(name)).toBe(2);
    const answer = (await world.sync(name))?.observed;
    expect(answer).toMatchObject({ handledReconcile: 1 });
    expect(answer).not.toHaveProperty("owesReconcile");
  }

  /** Expects that the Sync is not due again and again while the reconcile cannot be answered. */
  async function isOwed(world: WorkerWorld, name: string): Promise<void> {
    expect((await world.sync(name))?.observed).toMatchObject({ handledReconcile: 1, owesReconcile: true });
  }

  test("a reconcile under a freeze is answered after the freeze", async () => {
    const world = await leftAlone("frozen");
    await world.setFreezes({ freezes: [freeze] });
    await ask(world, "frozen");
    await world.work();
    await world.setFreezes({});
    await isOwed(world, "frozen");
    await answered(world, "frozen");
  });

  test("a reconcile while the cluster does not answer is answered when it answers again", async () => {
    const world = await leftAlone("away");
    await ask(world, "away");
    await world.work({ connector: { connect: async () => away, distrust() {} } });
    await isOwed(world, "away");
    await answered(world, "away");
  });

  test("a reconcile of a suspended Sync that is not ready is answered when the Sync is resumed", async () => {
    const world = await leftAlone("suspended");
    await world.suspend("suspended");
    await ask(world, "suspended");
    await world.work();
    await world.setOwner("suspended", {});
    await answered(world, "suspended");
  });
});
