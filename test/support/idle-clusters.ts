/** Measures the memory of idle clusters in one process. Run as a program, it is the measured process. */
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type ClusterConnection, startClusterHost } from "@starling/embedded-apiserver";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";
import { configMap, deployment, endpointOf, namespace } from "#test/support/cluster-fixture.ts";

/**
 * The memory per cluster without the first one, which includes shared memory. It includes the clients in the same
 * process.
 */
export interface ClusterWeight {
  readonly heapBytes: number;
  readonly rssBytes: number;
}

export interface ClusterFootprint {
  readonly clusters: number;
  /** A new cluster with controllers, a port of its own and its default objects. */
  readonly fresh: ClusterWeight;
  /** A cluster after discovery, with a Deployment and its Pods, 20 other objects, and an open connection. */
  readonly used: ClusterWeight;
  /** The memory of the process with all its clusters. */
  readonly totalRssBytes: number;
}

const execFileAsync = promisify(execFile);
const timeoutMs = 120_000;
const settleMs = 50;
const podsOfDeployment = 2;

/** Measures this number of idle clusters in a separate process. */
export async function footprintOfClusters(clusters: number): Promise<ClusterFootprint> {
  const program = fileURLToPath(import.meta.url);
  const { stdout } = await execFileAsync(process.execPath, ["--expose-gc", program, String(clusters)], {
    timeout: timeoutMs,
  });
  return JSON.parse(stdout);
}

interface Weight {
  readonly heap: number;
  readonly rss: number;
}

/** Collects garbage twice with a pause, because the first collection makes more memory free for the second. */
async function weigh(): Promise<Weight> {
  for (let round = 0; round < 2; round++) {
    globalThis.gc?.();
    await sleep(settleMs);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed + external, rss };
}

function difference(before: Weight, after: Weight, clusters: number): ClusterWeight {
  return {
    heapBytes: Math.round((after.heap - before.heap) / clusters),
    rssBytes: Math.round((after.rss - before.rss) / clusters),
  };
}

/** Creates the objects of a Sync of ordinary size. */
async function use(cluster: ClusterConnection): Promise<KubeConnection> {
  const connection = new KubeConnection(endpointOf(cluster));
  const client = connection.client({ deadlineMs: Date.now() + timeoutMs });
  const objects = [
    namespace("shop"),
    deployment("shop/web"),
    ...Array.from({ length: 20 }, (_, index) => configMap(`shop/settings-${index}`)),
  ];
  for (const object of objects) {
    const found = await client.lookup({ group: groupOf(object.apiVersion), kind: object.kind });
    if (found.outcome !== "found") throw new Error(`the cluster does not know ${object.kind}`);
    await client.apply(found.info, object);
  }
  return connection;
}

async function weighClusters(clusters: number): Promise<ClusterFootprint> {
  const host = await startClusterHost();
  const add = async (index: number) => {
    host.addCluster(`idle-${index}`);
    return host.openPort(`idle-${index}`);
  };
  const connections = [await use(await add(0))];
  const before = await weigh();
  const added: ClusterConnection[] = [];
  for (let index = 1; index <= clusters; index++) added.push(await add(index));
  const fresh = await weigh();
  for (const each of added) connections.push(await use(each));
  const isReady = () => host.connections().every(({ name }) => readyPods(host.objects(name)) === podsOfDeployment);
  while (!isReady()) await sleep(settleMs);
  host.clearRequests();
  const used = await weigh();
  for (const connection of connections) connection.close();
  await host.stop();
  return {
    clusters,
    fresh: difference(before, fresh, clusters),
    used: difference(before, used, clusters),
    totalRssBytes: used.rss,
  };
}

function readyPods(objects: readonly JsonObject[]): number {
  return objects.filter(({ kind, status }) => kind === "Pod" && stringAt(status, "phase") === "Running").length;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(JSON.stringify(await weighClusters(Number(process.argv[2]))));
}
