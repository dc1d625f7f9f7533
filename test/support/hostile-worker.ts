/** A worker with a cluster whose answers a test controls, in front of an honest API server that holds the objects. */

import { startClusterHost } from "@starling/embedded-apiserver";
import { loadInventory } from "#functions/apply/steps/sync-blobs.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { Observed } from "#shared/fleet/rows/sync-row.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";
import { type HostileApi, startHostileApi } from "#test/support/hostile-api.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

export interface HostileWorker {
  readonly api: HostileApi;
  readonly world: WorkerWorld;
  /** Runs the routine check of applied objects at a later time. */
  checkAgain(options?: { readonly remainingMs?: number }): Promise<void>;
  observed(): Promise<Observed>;
  /** The names of objects with a Sync's label in the honest server. */
  members(): readonly string[];
  /** The names in the inventory of `web`. */
  recorded(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export async function startHostileWorker(): Promise<HostileWorker> {
  const host = await startClusterHost({ controllers: "off" });
  host.addCluster("c1");
  const api = await startHostileApi(await host.openPort("c1"));
  // Deadlines use the worker's clock.
  const kube: KubeConnection = new KubeConnection(endpointOf(api), { ...systemClock, now: () => world.clock.now() });
  const world = await new WorkerWorld({
    connect: async (_cluster, deadline) => kube.client({ deadlineMs: deadline.getTime() }),
    distrust() {},
  }).begin();
  return {
    api,
    world,
    async checkAgain(options = {}) {
      world.aheadMs += 700_000;
      await world.work(options);
    },
    async observed() {
      const seen = (await world.sync("web"))?.observed;
      if (seen === undefined) throw new Error("nothing was observed");
      return seen;
    },
    members: () =>
      host
        .objects("c1")
        .filter((object) => stringAt(object, "metadata", "labels", partOfLabel) !== undefined)
        .map((object) => stringAt(object, "metadata", "name") ?? "")
        .sort(),
    async recorded() {
      const row = await world.sync("web");
      if (row === undefined) throw new Error("there is no Sync");
      const setId = setIdOf({ syncNamespace: row.namespace, syncName: row.name });
      return (await loadInventory(row, setId, world.blobs)).entries.map(({ id }) => id.name).sort();
    },
    async stop() {
      kube.close();
      await api.stop();
      await host.stop();
    },
  };
}
