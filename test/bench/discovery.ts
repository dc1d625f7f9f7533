import type { BenchResult, Figures } from "#test/bench/bench.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { addDiscoveryFleet, fleetArns, fleetDiscoveries } from "#test/support/discovery-fleet.ts";
import { type DiscoveryWorld, startDiscoveryWorld } from "#test/support/discovery-world.ts";

/** The default of a ClusterDiscovery is ten minutes. */
const intervalHours = 1 / 6;

/** What a fleet of 400 clusters of 30 accounts costs in requests, when it is found and when nothing has changed. */
export async function discovery(): Promise<BenchResult> {
  const world = await startDiscoveryWorld();
  try {
    await addDiscoveryFleet(world);
    const first = await round(world);
    const found = (await world.fleet()).length;
    world.pass(intervalHours);
    const again = await round(world);
    world.pass(intervalHours);
    const sandbox = world.sandbox();
    await round(world, sandbox);
    world.pass(intervalHours);
    const warm = await round(world, sandbox);
    const failures = found === fleetArns.length ? [] : [`${found} of ${fleetArns.length} clusters were found`];
    return {
      target: "none",
      ratios: {
        requestsPerClusterFirst: perCluster(first),
        requestsPerClusterUnchanged: perCluster(again),
        requestsPerClusterUnchangedWarm: perCluster(warm),
      },
      figures: {
        first: first.figures,
        "unchanged, new sandbox": again.figures,
        "unchanged, warm sandbox": warm.figures,
      },
      failures,
    };
  } finally {
    await world.stop();
  }
}

interface Round {
  readonly requests: number;
  readonly figures: Figures;
}

/** Each of the documents once: what EKS, STS and the others were asked over HTTP, and the table and the queues through their ports. */
async function round(world: DiscoveryWorld, sandbox = world.sandbox()): Promise<Round> {
  const { table, counts } = countedTable(world.table);
  world.sender.take();
  world.operations();
  for (const name of fleetDiscoveries) await world.look(name, { table, sandbox });
  const operations = world.operations();
  const messages = world.sender.take().length;
  const named = Object.entries(Object.groupBy(operations, (operation) => operation));
  return {
    requests: operations.length + counts.requests + messages,
    figures: {
      ...Object.fromEntries(named.map(([operation, all = []]) => [operation, all.length])),
      table: counts.requests,
      messages,
    },
  };
}

function perCluster({ requests }: Round): number {
  return Math.round((requests / fleetArns.length) * 1000) / 1000;
}
