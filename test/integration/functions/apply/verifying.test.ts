import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type KubeObject, listAt, valueAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("a Sync of which one object is not ready, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  /** Applies a Sync that waits for a Deployment, which no controller rolls out. */
  async function waiting(name: string, apply: Parameters<WorkerWorld["assign"]>[2] = {}): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    await world.assign(name, [namespace(name), configMap(`${name}/c`), deployment(`${name}/web`)], apply);
    await world.work();
    expect(await world.phase(name)).toBe("Verifying");
    return world;
  }

  const pathOf = (name: string) => `/api/v1/namespaces/${name}/configmaps/c`;

  async function dataOf(name: string): Promise<unknown> {
    return (await cluster.raw("GET", pathOf(name))).data;
  }

  async function edit(name: string): Promise<void> {
    await cluster.raw("PATCH", pathOf(name), { as: "merge-patch", body: { data: { k: "edited" } } });
  }

  /** Somebody deletes ConfigMap c and makes another of its name. */
  async function replace(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    await cluster.raw("DELETE", pathOf(name));
    const stranger = configMap(`${name}/c`, { k: "a stranger's" });
    const body = { ...stranger, metadata: { ...stranger.metadata, annotations } };
    await cluster.raw("POST", `/api/v1/namespaces/${name}/configmaps`, { body });
  }

  async function rollOut(name: string, observedGeneration = 1): Promise<void> {
    const status = {
      observedGeneration,
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      conditions: [
        { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
        { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
      ],
    };
    const path = `/apis/apps/v1/namespaces/${name}/deployments/web/status`;
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { status } });
  }

  async function changeImage(name: string): Promise<void> {
    const path = `/apis/apps/v1/namespaces/${name}/deployments/web?fieldManager=a-stranger`;
    const containers = [{ name: "web", image: "web:theirs" }];
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { spec: { template: { spec: { containers } } } } });
  }

  async function imageOf(name: string): Promise<unknown> {
    const live = await cluster.raw("GET", `/apis/apps/v1/namespaces/${name}/deployments/web`);
    const [container] = listAt(live, "spec", "template", "spec", "containers") as KubeObject[];
    return valueAt(container, "image");
  }

  async function checkAfter(world: WorkerWorld, seconds: number): Promise<void> {
    world.aheadMs += seconds * 1000;
    await world.work();
  }

  test("the inventory is recorded once, after the apply, and not again when the workloads become ready", async () => {
    const world = await waiting("recorded-once");
    const { inventory } = (await world.sync("recorded-once"))?.observed ?? {};
    expect(inventory).toBeDefined();
    await rollOut("recorded-once");
    world.aheadMs += 30_000;
    await world.work();
    const { observed } = (await world.sync("recorded-once")) ?? {};
    expect(observed).toMatchObject({ phase: "Ready", inventory });
    expect(observed?.inspectedAt).toBeDefined();

    const next = [
      namespace("recorded-once"),
      deployment("recorded-once/web"),
      configMap("recorded-once/c", { k: "2" }),
    ];
    await world.assign("recorded-once", next);
    await world.work();
    expect((await world.sync("recorded-once"))?.observed?.applied?.attempt).toBe(2);
    expect(await dataOf("recorded-once")).toEqual({ k: "2" });
  });

  test("the inventory is recorded anew when an object changed whose metadata the checks read", async () => {
    const world = await waiting("recorded-anew");
    const { inventory } = (await world.sync("recorded-anew"))?.observed ?? {};
    const body = { metadata: { labels: { "a-stranger": "yes" } } };
    await cluster.raw("PATCH", pathOf("recorded-anew"), { as: "merge-patch", body });
    await rollOut("recorded-anew");
    world.aheadMs += 30_000;
    await world.work();
    const { observed } = (await world.sync("recorded-anew")) ?? {};
    expect(observed?.phase).toBe("Ready");
    expect(observed?.inventory).not.toBe(inventory);
  });

  test("drift of the other objects is corrected at the interval, and not checked for earlier", async () => {
    const world = await waiting("unready-correct");
    await edit("unready-correct");
    for (let check = 0; check < 3; check++) await checkAfter(world, 60);
    expect(await dataOf("unready-correct")).toEqual({ k: "edited" });
    expect((await world.sync("unready-correct"))?.observed).not.toHaveProperty("drift");
    await checkAfter(world, 500);
    expect(await dataOf("unready-correct")).toEqual({ k: "1" });
    const corrected = (await world.sync("unready-correct"))?.observed;
    expect(corrected).toMatchObject({ phase: "Verifying", drift: { objects: 1, corrected: true } });

    await edit("unready-correct");
    await checkAfter(world, 60);
    expect(await dataOf("unready-correct")).toEqual({ k: "edited" });
    await checkAfter(world, 700);
    expect(await dataOf("unready-correct")).toEqual({ k: "1" });
  });

  test("drift of the other objects is corrected at once when somebody asks for a check", async () => {
    const world = await waiting("unready-asked");
    await edit("unready-asked");
    const row = await world.sync("unready-asked");
    if (row === undefined) throw new Error("it was assigned");
    const asked: SyncRow = { ...row, version: row.version + 1, reconcile: 1 };
    await world.table.write([{ put: asked }]);
    await checkAfter(world, 5);
    expect(await dataOf("unready-asked")).toEqual({ k: "1" });
  });

  test("drift of the other objects is reported if it is not to be corrected", async () => {
    const world = await waiting("unready-report", { drift: "report" });
    await edit("unready-report");
    await checkAfter(world, 700);
    expect(await dataOf("unready-report")).toEqual({ k: "edited" });
    const reported = (await world.sync("unready-report"))?.observed;
    expect(reported).toMatchObject({ phase: "Verifying", drift: { objects: 1, corrected: false } });
  });

  test("health is checked while the Sync is suspended, and nothing is corrected", async () => {
    const world = await waiting("unready-still");
    const suspended = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1 };
    await world.setOwner("unready-still", { operations: { suspended } });
    await edit("unready-still");
    await checkAfter(world, 700);
    await rollOut("unready-still");
    await checkAfter(world, 60);
    expect(await world.phase("unready-still")).toBe("Ready");
    expect((await world.sync("unready-still"))?.observed?.conditions).toContainEqual(
      expect.objectContaining({ type: "Drifted", status: "True", reason: "DriftDetected" }),
    );
    expect(await dataOf("unready-still")).toEqual({ k: "edited" });
  });

  test("an object that a stranger changed does not count as ready, and is corrected", async () => {
    const world = await waiting("changed");
    await changeImage("changed");
    await rollOut("changed", 2);
    await checkAfter(world, 5);
    expect((await world.sync("changed"))?.observed).toMatchObject({
      phase: "Verifying",
      drift: { objects: 1, corrected: true },
    });
    expect(await imageOf("changed")).toBe("web:1");
    await rollOut("changed", 3);
    await checkAfter(world, 60);
    expect(await world.phase("changed")).toBe("Ready");
    expect(await imageOf("changed")).toBe("web:1");
  });

  test("an object that a stranger changed is reported as drift when it is ready, if drift is not to be corrected", async () => {
    const world = await waiting("changed-report", { drift: "report" });
    await changeImage("changed-report");
    await rollOut("changed-report", 2);
    await checkAfter(world, 5);
    const reported = (await world.sync("changed-report"))?.observed;
    expect(reported?.phase).toBe("Ready");
    expect(reported?.conditions).toContainEqual(expect.objectContaining({ type: "Drifted", status: "True" }));
    expect(await imageOf("changed-report")).toBe("web:theirs");
  });

  test("an object that a stranger made under the same name does not count, and is taken over", async () => {
    const world = await waiting("replaced");
    await replace("replaced");
    await rollOut("replaced");
    await checkAfter(world, 60);
    expect((await world.sync("replaced"))?.observed).toMatchObject({
      phase: "Retrying",
      reason: "ObjectsMissing",
      message: "ConfigMap replaced/c was replaced by another object of its name; it is put back",
    });
    await checkAfter(world, 60);
    expect(await dataOf("replaced")).toEqual({ k: "1" });
    const put = (await world.sync("replaced"))?.observed;
    expect(put).toMatchObject({ phase: "Ready", drift: { objects: 1, corrected: true } });
  });

  test("an object that another tool made under the same name does not count, and is left to that tool", async () => {
    const world = await waiting("taken");
    await replace("taken", { "argocd.argoproj.io/tracking-id": "shop:/ConfigMap:taken/c" });
    await rollOut("taken");
    for (let check = 0; check < 3; check++) {
      await checkAfter(world, 60);
      expect(await world.phase("taken")).not.toBe("Ready");
    }
    expect(await dataOf("taken")).toEqual({ k: "a stranger's" });
    const refused = (await world.sync("taken"))?.observed;
    expect(refused?.message).toContain("ConfigMap taken/c belongs to argocd");
  });

  test.each(["report", "off"] as const)(
    "a stranger's object does not make the Sync ready, with drift %s",
    async (drift) => {
      const name = `replaced-${drift}`;
      const world = await waiting(name, { drift });
      await replace(name);
      await rollOut(name);
      await checkAfter(world, 60);
      expect((await world.sync(name))?.observed).toMatchObject({
        phase: "Verifying",
        problems: [{ object: `ConfigMap ${name}/c`, reason: "Replaced" }],
      });
      expect(await dataOf(name)).toEqual({ k: "a stranger's" });
    },
  );
});
