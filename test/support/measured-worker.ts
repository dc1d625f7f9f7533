/**
 * A cluster's worker in a process of its own, with its rows in memory: what it needs of memory is seen from outside.
 * Reads `{cluster, objects}` from stdin; prints what was observed and the most memory that the process had.
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
// And the look that follows: at what changed.
world.aheadMs += 700_000;
await world.work();
kube.close();
const observed = (await world.sync("web"))?.observed;
console.log(JSON.stringify({ observed, peakMiB: Math.ceil(process.resourceUsage().maxRSS / 1024) }));
