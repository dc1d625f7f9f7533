import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type KubeObject, listAt, valueAt } from "#shared/kube/kube-object.ts";
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

  async function begin(name: string, env: KubeObject[] = []): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, objects(name, env));
    await world.work();
    return world;
  }

  const webOf = (name: string) => `/apis/apps/v1/namespaces/${name}/deployments/web`;
  const configOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;

  /** Scales a Deployment, as the controller of a HorizontalPodAutoscaler does. */
  async function scale(name: string, replicas: number): Promise<void> {
    const path = `${webOf(name)}/scale?fieldManager=kube-controller-manager`;
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { spec: { replicas } } });
  }

  async function edit(name: string): Promise<void> {
    const path = `${configOf(name)}?fieldManager=a-stranger`;
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "edited" } } });
  }

  async function patchImage(name: string): Promise<void> {
    const path = `${webOf(name)}?fieldManager=a-stranger`;
    const containers = [{ name: "web", image: "web:theirs" }];
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { spec: { template: { spec: { containers } } } } });
  }

  function imageOf(live: KubeObject): unknown {
    const [container] = listAt(live, "spec", "template", "spec", "containers") as KubeObject[];
    return valueAt(container, "image");
  }

  async function replicasOf(name: string): Promise<unknown> {
    return valueAt(await cluster.raw("GET", webOf(name)), "spec", "replicas");
  }

  async function check(world: WorkerWorld): Promise<void> {
    world.aheadMs += 700_000;
    await world.work();
  }

  /** Scales to another number before each check. @returns the outcome of each check. */
  async function scaledBeforeEach(world: WorkerWorld, name: string, checks: number): Promise<readonly unknown[]> {
    const left: unknown[] = [];
    for (let round = 0; round < checks; round++) {
      await scale(name, 10 + round);
      await check(world);
      left.push(await replicasOf(name));
    }
    return left;
  }

  async function observed(world: WorkerWorld, name: string): Promise<NonNullable<SyncRow["observed"]>> {
    const seen = (await world.sync(name))?.observed;
    if (seen === undefined) throw new Error(`${name} was not checked`);
    return seen;
  }

  test("corrections end after five of the same fields, and whoever undoes them is named", async () => {
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
    await check(world);
    const again = await observed(world, "scaled");
    expect(again.drift).toEqual(left.drift);
    expect(again.leftAlone).toEqual(left.leftAlone);
    expect(world.sender.take().filter(({ to }) => to === "report")).toEqual([]);
  });

  test("the end of one object's corrections does not end those of other objects", async () => {
    const world = await begin("others");
    await scaledBeforeEach(world, "others", 6);
    await edit("others");
    await check(world);
    expect((await cluster.raw("GET", configOf("others"))).data).toEqual({ k: "1" });
    expect(await replicasOf("others")).toBe(15);
    expect((await observed(world, "others")).leftAlone).toMatchObject([{ object: "Deployment others/web" }]);
  });

  test("corrections begin again when somebody asks for them, and with a new rendering", async () => {
    const world = await begin("again");
    await scaledBeforeEach(world, "again", 6);
    const row = await world.sync("again");
    if (row === undefined) throw new Error("it was assigned");
    const asked: SyncRow = { ...row, version: row.version + 1, reconcile: 1 };
    await world.table.write([{ put: asked }]);
    await check(world);
    expect(await replicasOf("again")).toBe(2);
    expect(await observed(world, "again")).not.toHaveProperty("leftAlone");
    expect(await scaledBeforeEach(world, "again", 6)).toEqual([2, 2, 2, 2, 14, 15]);

    await world.assign("again", objects("again", [{ name: "A", value: "1" }]));
    await world.work();
    expect(await replicasOf("again")).toBe(2);
    expect(await observed(world, "again")).not.toHaveProperty("leftAlone");
    expect(await scaledBeforeEach(world, "again", 6)).toEqual([2, 2, 2, 2, 2, 15]);
  });

  test("corrections also end for fields that several writers undo in turn", async () => {
    const world = await begin("turns");
    const left: unknown[] = [];
    for (let round = 0; round < 12; round++) {
      if (round % 2 === 0) await scale("turns", 10 + round);
      else await patchImage("turns");
      await check(world);
      const live = await cluster.raw("GET", webOf("turns"));
      left.push(`${valueAt(live, "spec", "replicas")} of ${imageOf(live)}`);
    }
    expect(left).toEqual([...Array.from({ length: 10 }, () => "2 of web:1"), "20 of web:1", "20 of web:theirs"]);
    const [object] = (await observed(world, "turns")).leftAlone ?? [];
    expect(object).toMatchObject({ object: "Deployment turns/web", reason: "Drifted" });
    expect(object?.message).toContain("several undo it, a-stranger last with");
    expect(object?.message).toContain("after 10 corrections it is left alone");
  });

  test("corrections end for an object that is deleted each time, until somebody asks for it or it is rendered anew", async () => {
    const world = await begin("deleted");
    const deletedBeforeEach = async (checks: number) => {
      const made: boolean[] = [];
      for (let round = 0; round < checks; round++) {
        await cluster.raw("DELETE", configOf("deleted"));
        await check(world);
        made.push((await cluster.statusOf(configOf("deleted"))) === 200);
      }
      return made;
    };
    expect(await deletedBeforeEach(6)).toEqual([true, true, true, true, true, false]);
    for (let round = 0; round < 3; round++) {
      await check(world);
      const left = await observed(world, "deleted");
      expect(left.leftAlone).toMatchObject([{ object: "ConfigMap deleted/c", reason: "Drifted" }]);
      expect(left.leftAlone?.[0]?.message).toContain("each time, and after 5 corrections it is left alone");
      expect(left.conditions).toContainEqual(
        expect.objectContaining({ type: "Drifted", status: "True", reason: "CorrectionsUndone" }),
      );
      expect(left.phase).toBe("Verifying");
      expect(left.message).not.toContain("it is put back");
      expect(await cluster.statusOf(configOf("deleted"))).toBe(404);
    }

    const row = await world.sync("deleted");
    if (row === undefined) throw new Error("it was assigned");
    const asked: SyncRow = { ...row, version: row.version + 1, reconcile: 1 };
    await world.table.write([{ put: asked }]);
    await check(world);
    expect(await cluster.statusOf(configOf("deleted"))).toBe(200);
    expect(await deletedBeforeEach(5)).toEqual([true, true, true, true, false]);

    await world.assign("deleted", objects("deleted", [{ name: "A", value: "1" }]));
    await world.work();
    expect(await cluster.statusOf(configOf("deleted"))).toBe(200);
  });

  test("drift in the other fields of an object that is left alone is still found", async () => {
    const world = await begin("hidden", [
      { name: "A", value: "1" },
      { name: "B", value: "$(A)2" },
    ]);
    await scaledBeforeEach(world, "hidden", 6);
    expect((await observed(world, "hidden")).leftAlone).toHaveLength(1);
    const live = await cluster.raw("GET", webOf("hidden"));
    const body = structuredClone(live) as { spec: { template: { spec: { containers: { env: unknown[] }[] } } } };
    body.spec.template.spec.containers[0]?.env.reverse();
    await cluster.raw("PUT", `${webOf("hidden")}?fieldManager=a-stranger`, { body });
    await check(world);
    const after = (await cluster.raw("GET", webOf("hidden"))) as unknown as typeof body;
    expect(after.spec.template.spec.containers[0]?.env).toMatchObject([{ name: "A" }, { name: "B" }]);
  });

  test("corrections go on if a check between them found nothing", async () => {
    const world = await begin("rarely");
    for (let round = 0; round < 8; round++) {
      await edit("rarely");
      await check(world);
      expect((await cluster.raw("GET", configOf("rarely"))).data).toEqual({ k: "1" });
      if (round === 3) await check(world);
      if (round === 6) await check(world);
    }
    expect(await observed(world, "rarely")).not.toHaveProperty("leftAlone");
  });
});
