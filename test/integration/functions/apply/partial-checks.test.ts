/** Checks that see or correct only a part of the drift. */
import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { clusterFixture, configMap, definition, namespace, widget } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

const unauthorized = {
  status: 401,
  body: { kind: "Status", status: "Failure", code: 401, reason: "Unauthorized", message: "Unauthorized" },
};

async function checkLater(): Promise<void> {
  worker.world.aheadMs += 700_000;
  await worker.world.work();
}

test("kinds that cannot be compared are reported: the first by its name and the others by their number", async () => {
  const groups = ["metrics.example.com", "others.example.com"];
  await worker.world.assign("api", [...groups.map((group) => definition(group))]);
  await worker.world.work();
  worker.reconnect();
  await worker.world.assign("web", [configMap("default/c"), ...groups.map((group) => widget(group, "default/w"))]);
  await worker.world.work();
  worker.reconnect();
  const reported: unknown[] = [];
  for (const down of [groups.slice(0, 1), groups]) {
    await worker.host.setFaults("c1", { unavailableApis: down.map((group) => `v1.${group}`) });
    await checkLater();
    const drifted = (await worker.observed()).conditions.find(({ type }) => type === "Drifted");
    expect(drifted).toMatchObject({ status: "Unknown", reason: "NotCompared" });
    reported.push(drifted?.message.replace(/ could not be compared: .*/s, ""));
  }
  expect(reported).toEqual(["Widget", "Widget and 1 more kinds"]);
});

test("a correction during which the cluster begins to refuse access is reported, and is made later", async () => {
  const path = "/api/v1/namespaces/shop/configmaps/c";
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work();
  const cluster = clusterFixture({ endpoint: worker.endpoint });
  await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "edited" } } });
  worker.host.intercept((request) =>
    request.method === "PATCH" && request.path.includes("/configmaps/c") ? unauthorized : "pass",
  );
  await checkLater();
  expect(await worker.observed()).toMatchObject({ phase: "Unreachable", drift: { objects: 1, corrected: false } });
  expect((await cluster.raw("GET", path)).data).toEqual({ k: "edited" });
  worker.host.intercept(undefined);
  await checkLater();
  // The planner assigns another attempt to a cluster that answers again.
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")]);
  await worker.world.work();
  expect(await worker.world.phase("web")).toBe("Ready");
  expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
  await cluster.stop();
});

describe("a cluster that answers its worker again", () => {
  const path = "/api/v1/namespaces/shop/configmaps/c";
  const objects = (k: string) => [namespace("shop"), configMap("shop/c", { k })];

  async function away(): Promise<void> {
    worker.host.intercept(() => unauthorized);
    await checkLater();
    expect(await worker.world.phase("web")).toBe("Unreachable");
    worker.host.intercept(undefined);
  }

  test("a Sync without a newer assignment is checked as before, and its drift is corrected", async () => {
    await worker.world.assign("web", objects("1"));
    await worker.world.work();
    await away();
    const cluster = clusterFixture({ endpoint: worker.endpoint });
    await cluster.raw("PATCH", path, { as: "merge-patch", body: { data: { k: "edited" } } });
    await checkLater();
    expect(await worker.observed()).toMatchObject({ phase: "Ready", drift: { objects: 1, corrected: true } });
    expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
    await cluster.stop();
  });

  test("a Sync with a newer assignment waits for its turn", async () => {
    await worker.world.assign("web", objects("1"));
    await worker.world.work();
    await worker.world.assign("web", objects("2"));
    await away();
    await checkLater();
    expect(await worker.observed()).toMatchObject({ phase: "Reachable", reason: "AnswersAgain", attempt: 2 });
    const cluster = clusterFixture({ endpoint: worker.endpoint });
    expect((await cluster.raw("GET", path)).data).toEqual({ k: "1" });
    await cluster.stop();
  });
});

test("an address is no longer trusted once another cluster is seen there, and is trusted before that", async () => {
  await worker.world.assign("web", [namespace("shop"), configMap("shop/c")], { drift: "report" });
  const kube = new KubeConnection(worker.endpoint, worker.world.clock);
  const distrusted: string[] = [];
  const connector: ClusterConnector = {
    connect: async (_cluster, deadline) => kube.client({ deadlineMs: deadline.getTime() }),
    distrust: ({ name }) => distrusted.push(name),
  };
  await worker.world.work({ connector });
  expect(await worker.world.phase("web")).toBe("Ready");
  expect(distrusted).toEqual([]);
  const { uid } = await worker.host.replaceCluster("c1");
  worker.world.aheadMs += 700_000;
  await worker.world.work({ connector });
  expect(await worker.observed()).toMatchObject({
    phase: "Unreachable",
    reason: "IdentityMismatch",
    message: expect.stringContaining(`uid ${uid}`),
  });
  expect(distrusted).toEqual(["c1"]);
  kube.close();
});
