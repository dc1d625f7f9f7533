/** A worker of one embedded cluster whose failure knobs a test turns. */
import { setTimeout as sleep } from "node:timers/promises";
import { type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { loadInventory } from "#functions/apply/steps/sync-blobs.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { Observed, Phase } from "#shared/fleet/rows/sync-row.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

export interface ClusterWorker {
  readonly host: ClusterHost;
  readonly endpoint: KubeEndpoint;
  readonly world: WorkerWorld;
  /** Forgets connections and kinds, as between two invocations of a function far apart. */
  reconnect(): void;
  /** The objects in the cluster that carry the label of a Sync, such as `ConfigMap web`. */
  members(): string[];
  /** The objects in the inventory of a Sync, in the same form; of `web` by default. */
  recorded(name?: string): Promise<string[]>;
  observed(name?: string): Promise<Observed>;
  /**
   * Runs the worker until `web` is ready, or in the phase `until`. The planner's part is played too: a cluster that
   * answers again gets another attempt.
   */
  recover(objects: readonly ManifestObject[], options?: { readonly until?: Phase }): Promise<void>;
  stop(): Promise<void>;
}

/** The time limit for connections in tests of silent clusters. On a busy machine `startPatientWorker` is for the others. */
export const connectTimeoutMs = 300;
const patientMs = 30_000;
const recoverWithinMs = 10_000;
const betweenChecksMs = 50;

/** The same names as of `members`. */
export function namesOf(objects: readonly ManifestObject[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
}

/** Starts a worker for tests in which no connection fails. */
export function startPatientWorker(): Promise<ClusterWorker> {
  return start(patientMs);
}

export function startClusterWorker(): Promise<ClusterWorker> {
  return start(connectTimeoutMs);
}

async function start(connectWithinMs: number): Promise<ClusterWorker> {
  const host = await startClusterHost({ controllers: "off" });
  host.addCluster("c1");
  const endpoint = { ...endpointOf(await host.openPort("c1")), connectTimeoutMs: connectWithinMs };
  const world = await new WorkerWorld({
    connect: async (_cluster, deadline, hurry = {}) => kube.client({ deadlineMs: deadline.getTime(), ...hurry }),
    distrust() {},
  }).begin();
  let kube = new KubeConnection(endpoint, world.clock);

  async function observed(name = "web"): Promise<Observed> {
    const seen = (await world.sync(name))?.observed;
    if (seen === undefined) throw new Error(`nothing was observed of ${name}`);
    return seen;
  }
  return {
    host,
    endpoint,
    world,
    reconnect() {
      kube.close();
      kube = new KubeConnection(endpoint, world.clock);
    },
    members: () =>
      host
        .objects("c1")
        .filter((object) => stringAt(object, "metadata", "labels", partOfLabel) !== undefined)
        .map((object) => `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`)
        .sort(),
    async recorded(name = "web") {
      const row = await world.sync(name);
      if (row === undefined) throw new Error(`there is no Sync ${name}`);
      const setId = setIdOf({ syncNamespace: row.namespace, syncName: name });
      const { entries } = await loadInventory(row, setId, world.blobs);
      return entries.map(({ id }) => `${id.kind} ${id.name}`).sort();
    },
    observed,
    async recover(objects, { until = "Ready" } = {}) {
      // One check may not be enough, because the discovery of kinds is kept for a second.
      for (const end = Date.now() + recoverWithinMs; Date.now() < end; await sleep(betweenChecksMs)) {
        world.aheadMs += 700_000;
        await world.work();
        const { phase } = await observed();
        if (phase === until) return;
        if (phase === "Reachable") await world.assign("web", objects);
      }
      throw new Error(`it did not recover: ${JSON.stringify(await observed())}`);
    },
    async stop() {
      kube.close();
      await host.stop();
    },
  };
}
