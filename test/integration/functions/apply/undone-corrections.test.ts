import { describe, expect, test } from "vitest";
import { type KubeObject, valueAt } from "#shared/domain/kube-object.ts";
import type { SyncRow } from "#shared/domain/rows/sync-row.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("corrections that somebody undoes, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  const objects = (name: string, env: KubeObject[] = []) => [
    namespace(name),
    configMap(`${name}/c`),
    deployment(`${name}/web`, env),
  ];

  async function begin(name: string): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, objects(name));
    await world.work();
    return world;
  }

  const webOf = (name: string) => `/apis/apps/v1/namespaces/${name}/deployments/web`;
  const configOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;

  /** As the controller of a HorizontalPodAutoscaler does it. */
  async function scale(name: string, replicas: number): Promise<void> {
    const path = `${webOf(name)}/scale?fieldManager=kube-controller-manager`;
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { spec: { replicas } } });
  }

  async function edit(name: string): Promise<void> {
    const path = `${configOf(name)}?fieldManager=a-stranger`;
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "edited" } } });
  }

  async function replicasOf(name: string): Promise<unknown> {
    return valueAt(await cluster.raw("GET", webOf(name)), "spec", "replicas");
  }

  async function look(world: WorkerWorld): Promise<void> {
    world.aheadMs += 700_000;
    await world.work();
  }

  /** Scaled before each look, to another number each time. @returns what each look left. */
  async function scaledBeforeEach(world: WorkerWorld, name: string, looks: number): Promise<readonly unknown[]> {
    const left: unknown[] = [];
    for (let round = 0; round < looks; round++) {
      await scale(name, 10 + round);
      await look(world);
      left.push(await replicasOf(name));
    }
    return left;
  }

  async function observed(world: WorkerWorld, name: string): Promise<NonNullable<SyncRow["observed"]>> {
    const seen = (await world.sync(name))?.observed;
    if (seen === undefined) throw new Error(`${name} was not looked at`);
    return seen;
  }

  test("end after five of the same fields, and who undoes them is named", async () => {
    const world = await begin("scaled");
    expect(await scaledBeforeEach(world, "scaled", 8)).toEqual([2, 2, 2, 2, 2, 15, 16, 17]);
    const left = await observed(world, "scaled");
    const [object] = left.leftAlone ?? [];
    expect(left.leftAlone).toHaveLength(1);
    expect(object).toMatchObject({ object: "Deployment scaled/web", reason: "Drifted" });
    expect(object?.message).toContain("kube-controller-manager (scale) undoes spec.replicas each time");
    expect(object?.message).toContain("leave replicas out of the manifest where a HorizontalPodAutoscaler");
    expect(left.conditions).toContainEqual(
      expect.objectContaining({ type: "Drifted", status: "True", reason: "CorrectionsUndone" }),
    );
    expect(left.drift).toMatchObject({ objects: 1, corrected: false });

    world.sender.take();
    await look(world);
    const again = await observed(world, "scaled");
    expect(again.drift).toEqual(left.drift);
    expect(again.leftAlone).toEqual(left.leftAlone);
    expect(world.sender.take().filter(({ to }) => to === "report")).toEqual([]);
  });

  test("of one object are the end of no other's", async () => {
    const world = await begin("others");
    await scaledBeforeEach(world, "others", 6);
    await edit("others");
    await look(world);
    expect((await cluster.raw("GET", configOf("others"))).data).toEqual({ k: "1" });
    expect(await replicasOf("others")).toBe(15);
    expect((await observed(world, "others")).leftAlone).toMatchObject([{ object: "Deployment others/web" }]);
  });

  test("begin again when somebody asks for it, and with a new rendering", async () => {
    const world = await begin("again");
    await scaledBeforeEach(world, "again", 6);
    const row = await world.sync("again");
    if (row === undefined) throw new Error("it was assigned");
    const asked: SyncRow = { ...row, version: row.version + 1, reconcile: 1 };
    await world.table.write([{ put: asked }]);
    await look(world);
    expect(await replicasOf("again")).toBe(2);
    expect(await observed(world, "again")).not.toHaveProperty("leftAlone");
    expect(await scaledBeforeEach(world, "again", 6)).toEqual([2, 2, 2, 2, 14, 15]);

    await world.assign("again", objects("again", [{ name: "A", value: "1" }]));
    await world.work();
    expect(await replicasOf("again")).toBe(2);
    expect(await observed(world, "again")).not.toHaveProperty("leftAlone");
    expect(await scaledBeforeEach(world, "again", 6)).toEqual([2, 2, 2, 2, 2, 15]);
  });

  test("go on where a look between them found nothing", async () => {
    const world = await begin("rarely");
    for (let round = 0; round < 8; round++) {
      await edit("rarely");
      await look(world);
      expect((await cluster.raw("GET", configOf("rarely"))).data).toEqual({ k: "1" });
      if (round === 3) await look(world);
      if (round === 6) await look(world);
    }
    expect(await observed(world, "rarely")).not.toHaveProperty("leftAlone");
  });
});
