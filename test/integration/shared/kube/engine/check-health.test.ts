import { describe, expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import { checkHealth, needsWholeObjects } from "#shared/kube/engine/check-health.ts";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { configMap, deployment, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { engineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

describe.each(clusterTargets)("checkHealth on $name", ({ start }) => {
  const cluster = forAllTests(async () => engineWorld(await start()));

  const health = (inventory: Inventory) => checkHealth(cluster.client, { inventory, clock: systemClock });
  const rolledOut = (replicas: number, generation = 1) => ({
    observedGeneration: generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
    conditions: [
      { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
      { type: "Available", status: "True", reason: "MinimumReplicasAvailable" },
    ],
  });

  test("objects that were read to find drift are not read again, with the same result", async () => {
    const inventory = await cluster.applied("twice", [
      namespace("twice"),
      configMap("twice/a"),
      configMap("twice/b"),
      deployment("twice/web"),
    ]);
    const { live } = await detectDrift(cluster.client, inventory, { isWhole: needsWholeObjects });
    const reads: string[] = [];
    const counting = new Proxy(cluster.client, {
      get(client, name) {
        const member: unknown = Reflect.get(client, name);
        if (name === "list" || name === "get") reads.push(name);
        return typeof member === "function" ? member.bind(client) : member;
      },
    });
    const again = await checkHealth(counting, { inventory, clock: systemClock, live });
    expect(again).toEqual(await health(inventory));
    // The one request reads the Pods of the Deployment that is not ready.
    expect(reads).toEqual(["list"]);
  });

  test("the check counts ready objects and names the others, worst first", async () => {
    const inventory = await cluster.applied("mixed", [
      namespace("mixed"),
      configMap("mixed/c"),
      configMap("mixed/gone"),
      deployment("mixed/web"),
      deployment("mixed/done"),
    ]);
    await cluster.raw("DELETE", "/api/v1/namespaces/mixed/configmaps/gone");
    const path = "/apis/apps/v1/namespaces/mixed/deployments/done/status";
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { status: rolledOut(2) } });
    expect(await health(inventory)).toMatchObject({
      total: 5,
      ready: 3,
      failed: 0,
      worst: "NotFound",
      notReady: [
        { id: { name: "gone" }, status: "NotFound" },
        { id: { name: "web" }, status: "InProgress", reason: "LessReplicas" },
      ],
    });
  });

  test("a status that is older than the last apply does not count", async () => {
    const first = await cluster.applied("older", [namespace("older"), deployment("older/web")]);
    const path = "/apis/apps/v1/namespaces/older/deployments/web/status";
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { status: rolledOut(2) } });
    expect(await health(first)).toMatchObject({ worst: "Current" });
    const second = await cluster.applied("older", [
      namespace("older"),
      deployment("older/web", [{ name: "A", value: "1" }]),
    ]);
    expect(await health(second)).toMatchObject({ notReady: [{ reason: "LatestGenerationNotObserved" }] });
  });

  test("the check reports the errors of an unready workload's Pods", async () => {
    const inventory = await cluster.applied("pods", [namespace("pods"), deployment("pods/web")]);
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web-7d9f-x2k", labels: { app: "web" } },
      spec: { containers: [{ name: "web", image: "nope" }] },
    };
    await cluster.raw("POST", "/api/v1/namespaces/pods/pods", { body: pod });
    const waiting = {
      name: "web",
      image: "nope",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "ImagePullBackOff" } },
    };
    const status = { phase: "Pending", containerStatuses: [waiting] };
    await cluster.raw("PATCH", "/api/v1/namespaces/pods/pods/web-7d9f-x2k/status", {
      as: "merge-patch",
      body: { status },
    });
    const report = await health(inventory);
    expect(report.notReady[0]?.message).toBe("Replicas: 0/2. Pod web-7d9f-x2k: container web ImagePullBackOff");
  });

  test("the Pods of a workload that is ready, or was replaced, are not read", async () => {
    const inventory = await cluster.applied("calm", [
      namespace("calm"),
      deployment("calm/ready"),
      deployment("calm/theirs"),
    ]);
    const path = "/apis/apps/v1/namespaces/calm/deployments";
    await cluster.raw("PATCH", `${path}/ready/status`, { as: "merge-patch", body: { status: rolledOut(2) } });
    await cluster.raw("DELETE", `${path}/theirs`);
    await cluster.raw("POST", path, { body: deployment("calm/theirs") });
    const asked: string[] = [];
    const client = watchedClient(cluster.client, async ({ name }) => {
      asked.push(name);
    });
    const report = await checkHealth(client, { inventory, clock: systemClock });
    expect(report).toMatchObject({ ready: 2, notReady: [{ id: { name: "theirs" }, reason: "Replaced" }] });
    expect(asked).toEqual(expect.arrayContaining(["ready", "theirs"]));
    expect(asked).not.toContain("pods");
  });

  const crashing = (name: string) => ({
    phase: "Running",
    containerStatuses: [
      {
        ...{ name, image: name, imageID: "", ready: false, restartCount: 3 },
        state: { waiting: { reason: "CrashLoopBackOff" } },
      },
    ],
  });

  test("a Deployment does not fail with its Pods, because it has its own deadline", async () => {
    const inventory = await cluster.applied("patient", [namespace("patient"), deployment("patient/web")]);
    const metadata = { name: "web-0", labels: { app: "web" } };
    const spec = { containers: [{ name: "web", image: "web" }] };
    const pods = "/api/v1/namespaces/patient/pods";
    await cluster.raw("POST", pods, { body: { apiVersion: "v1", kind: "Pod", metadata, spec } });
    await cluster.raw("PATCH", `${pods}/web-0/status`, { as: "merge-patch", body: { status: crashing("web") } });
    expect(await health(inventory)).toMatchObject({
      failed: 0,
      worst: "InProgress",
      notReady: [{ status: "InProgress", message: "Replicas: 0/2. Pod web-0: container web CrashLoopBackOff" }],
    });
  });

  test("a StatefulSet fails with its Pods", async () => {
    const labels = { app: "db" };
    const set = manifest({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "db", namespace: "stateful" },
      spec: {
        replicas: 1,
        serviceName: "db",
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "db", image: "db" }] } },
      },
    });
    const inventory = await cluster.applied("stateful", [namespace("stateful"), set]);
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "db-0", labels },
      spec: { containers: [{ name: "db", image: "db" }] },
    };
    await cluster.raw("POST", "/api/v1/namespaces/stateful/pods", { body: pod });
    await cluster.raw("PATCH", "/api/v1/namespaces/stateful/pods/db-0/status", {
      as: "merge-patch",
      body: { status: crashing("db") },
    });
    expect(await health(inventory)).toMatchObject({
      failed: 1,
      worst: "Failed",
      notReady: [{ status: "Failed", message: "1 pods have failed. Pod db-0: container db CrashLoopBackOff" }],
    });
  });

  test("many objects of a kind are read with one LIST", async () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    const inventory = await cluster.applied("lots", [
      namespace("lots"),
      ...names.map((name) => configMap(`lots/${name}`)),
    ]);
    expect(await health(inventory)).toMatchObject({ total: 8, ready: 8, notReady: [] });
  });
});
