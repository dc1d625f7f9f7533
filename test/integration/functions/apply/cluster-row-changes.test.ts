/** A Cluster's row changes during a worker's run, or lacks an observation that the worker has not written yet. */
import { describe, expect, test } from "vitest";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("a Cluster's row during a run, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  /** @param atConnect - runs before a client is opened. */
  async function begin(atConnect: (world: WorkerWorld) => Promise<void> = async () => {}) {
    const methods: string[] = [];
    const connector: ClusterConnector = {
      async connect() {
        await atConnect(world);
        return watchedClient(cluster.client, async ({ method }) => {
          methods.push(method);
        });
      },
      distrust() {},
    };
    const world: WorkerWorld = await new WorkerWorld(connector).begin();
    return { world, methods };
  }

  async function label(world: WorkerWorld, labels: ClusterRow["labels"]): Promise<void> {
    const row = await world.table.get(keys.cluster("c1"));
    if (row === undefined) throw new Error("there is no Cluster");
    const labelled: ClusterRow = { ...row, labels, version: row.version + 1 };
    await world.table.write([{ put: labelled }]);
  }

  test("a worker follows a freeze that selects labels which the Cluster got during the run", async () => {
    let isLabelled = false;
    const { world } = await begin(async (running) => {
      if (isLabelled) await label(running, { env: "prod" });
    });
    await world.assign("labels-before", [namespace("labels-before")]);
    await world.work();
    const clusters = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };
    await world.setFreezes({
      freezes: [{ name: "inc-1", by: "ana", at: "2026-11-20T08:00:00.000Z", reason: "INC-1", clusters }],
    });
    await world.assign("labels-a", [namespace("labels-a")]);
    await world.assign("labels-b", [namespace("labels-b")]);
    isLabelled = true;
    await world.work();
    expect(await world.phase("labels-a")).toBe("Ready");
    const held = await world.sync("labels-b");
    expect(held).toMatchObject({ held: { name: "inc-1" } });
    expect(held).not.toHaveProperty("observed");
    expect(await cluster.statusOf("/api/v1/namespaces/labels-b")).toBe(404);
  });

  test("a worker asks a cluster for its version only once in a run, also before the answer is written", async () => {
    const { world, methods } = await begin();
    await world.assign("seen-b", [namespace("seen-b"), configMap("seen-b/c")]);
    await world.work();
    world.aheadMs += 22_000_000;
    await world.assign("seen-a", [namespace("seen-a")]);
    await world.suspend("seen-b");
    await world.assign("seen-b", [namespace("seen-b"), configMap("seen-b/c", { k: "2" })]);
    const before = (await world.sync("seen-b"))?.observed?.at;
    methods.length = 0;
    await world.work();
    expect(await world.phase("seen-a")).toBe("Ready");
    expect((await world.sync("seen-b"))?.observed?.at).not.toBe(before);
    expect(methods.filter((method) => method === "serverVersion")).toHaveLength(1);
  });
});
