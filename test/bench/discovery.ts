import type { FaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import type { EksInventory } from "#shared/adapters/aws/eks-inventory.ts";
import type { Table } from "#shared/ports.ts";
import type { BenchResult, Figures } from "#test/bench/bench.ts";
import { addDiscoveryFleet, fleetArns, fleetDiscoveries } from "#test/support/discovery-fleet.ts";
import { type DiscoveryWorld, startDiscoveryWorldOn } from "#test/support/discovery-world.ts";
import { startEmulatedClients } from "#test/support/emulated-clients.ts";

/** The default interval of a ClusterDiscovery is ten minutes. */
const intervalHours = 1 / 6;

/** Counts the requests for a fleet of 400 clusters in 30 accounts, at its first scan and when nothing has changed. */
export async function discovery(): Promise<BenchResult> {
  const { aws, proxy, stop } = await startEmulatedClients({ seed: 1 });
  const deployed = only(readPlan(await synthesize()).tables, "table");
  await createTable(aws.dynamo, deployed);
  const world = await startDiscoveryWorldOn(new DynamoTable(aws.dynamo, deployed.name));
  const round = (sandbox = world.sandbox()) => countedRound(world, { sandbox, proxy });
  try {
    await addDiscoveryFleet(world);
    const first = await round();
    const found = (await world.fleet()).length;
    world.pass(intervalHours);
    const again = await round();
    world.pass(intervalHours);
    const sandbox = world.sandbox();
    await round(sandbox);
    world.pass(intervalHours);
    const warm = await round(sandbox);
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
    await Promise.all([world.stop(), stop()]);
  }
}

interface Round {
  readonly requests: number;
  readonly figures: Figures;
}

/**
 * Scans each document once. Requests to EKS, STS, the table and others are counted over HTTP, and messages at their
 * port.
 */
async function countedRound(
  world: DiscoveryWorld<Table>,
  { sandbox, proxy }: { readonly sandbox: EksInventory; readonly proxy: FaultProxy },
): Promise<Round> {
  world.sender.take();
  world.operations();
  proxy.resetCalls();
  for (const name of fleetDiscoveries) await world.scan(name, { sandbox });
  const asked = Object.entries(Object.groupBy(world.operations(), (operation) => operation));
  const figures = {
    ...Object.fromEntries(asked.map(([operation, all = []]) => [operation, all.length])),
    ...proxy.calls(),
    messages: world.sender.take().length,
  };
  return { requests: Object.values(figures).reduce((sum, count) => sum + count, 0), figures };
}

function perCluster({ requests }: Round): number {
  return Math.round((requests / fleetArns.length) * 1000) / 1000;
}
