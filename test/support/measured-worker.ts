/**
 * A cluster's worker in its own process, with its rows in memory, so that its memory can be measured from outside. It
 * reads `{cluster, objects}` from stdin. It prints the observation and the peak memory of the process.
 */
import { text } from "node:stream/consumers";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const { cluster, objects } = JSON.parse(await text(process.stdin));
const kube = new KubeConnection(endpointOf(cluster));
const world = await new WorkerWorld({
  connect: async (_cluster, deadline) => kube.client({ deadlineMs: deadline.getTime() }),
  distrust() {},
}).begin();
await world.assign("web", objects);
await world.work();
// This adds the next check, of what has changed.
world.aheadMs += 700_000;
await world.work();
kube.close();
const observed = (await world.sync("web"))?.observed;
console.log(JSON.stringify({ observed, peakMiB: Math.ceil(process.resourceUsage().maxRSS / 1024) }));
