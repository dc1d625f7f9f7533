/** 400 clusters in 30 accounts, and three ClusterDiscoveries with ten accounts each. */
import type { Table } from "#shared/ports.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument } from "#test/support/discovery-world.ts";

const fleetClusters = 400;
export const fleetAccounts: readonly string[] = Array.from({ length: 30 }, (_, at) => String(500_000_000_000 + at));
export const fleetDiscoveries = ["apps", "data", "edge"] as const;
export const fleetArns: readonly string[] = Array.from({ length: fleetClusters }, (_, at) =>
  arnOf(`c${String(at).padStart(3, "0")}`, fleetAccounts[at % fleetAccounts.length] ?? ""),
);

/** Two documents select by a tag. The third selects every cluster of its accounts. */
export async function addDiscoveryFleet(world: DiscoveryWorld<Table>): Promise<void> {
  for (const [at, account] of fleetAccounts.entries()) world.trust(account, fleetDiscoveries[at % 3] ?? "");
  for (const [at, arn] of fleetArns.entries()) {
    world.add(arn, { managed: "starling", ring: at % 20 === 0 ? "canary" : "broad", domain: `c${at}.example.com` });
  }
  const spec = {
    labels: { fromTags: { ring: "ring" }, allowed: { ring: ["canary", "broad"] } },
    values: { fromTags: ["domain"] },
    access: { role: { name: "starling/clusters/apply" } },
    name: "{{ eks.name }}",
  };
  const tags = { matchLabels: { managed: "starling" } };
  await world.apply(
    ...fleetDiscoveries.map((name, third) => {
      const accounts = fleetAccounts.filter((_, at) => at % 3 === third);
      return discoveryDocument(name, { accounts, ...(name === "edge" ? {} : { tags }) }, spec);
    }),
  );
}
