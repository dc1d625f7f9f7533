/** A ClusterDiscovery puts clusters into the zone whose setting names their VPC, and into zones of its own table. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { pacedClock } from "#local/base/paced-clock.ts";
import { addFleet, type Stack, startStack } from "#local/machine/stack.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
/** The VPC of the clusters of this machine. */
const vpc = "vpc-00000000";

let folder: string;
let stack: Stack;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-vpcs-"));
  stack = await startStack({
    repositories: folder,
    clock: pacedClock(10),
    tickEveryMs: 250,
    zones: JSON.stringify([
      { name: "spoke", ...subnets, vpcs: ["vpc-1a2b3c4d5e6f70819", vpc] },
      { name: "fixed", vpc: {} },
    ]),
  });
});
afterAll(async () => {
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

function discoverBy(access: object): Promise<unknown> {
  return stack.session.apply([
    {
      apiVersion: "starling.dev/v1alpha1",
      kind: "ClusterDiscovery",
      metadata: { name: "all" },
      spec: {
        eks: {
          organization: { account: "000000000000", ous: ["r-local"] },
          role: { name: "starling/discovery/scan" },
          regions: ["us-east-1", "eu-west-1"],
        },
        ...access,
      },
    },
  ]);
}

test("clusters of a VPC that a zone names are in that zone, and a table of the ClusterDiscovery goes before it", async () => {
  const names = await addFleet(stack, 3);
  const zones = async () => {
    const objects = await Promise.all(
      names.map((name) => stack.session.call<ClusterObject>("GET", `/v1/clusters/${name}`)),
    );
    return objects.map(({ status }) => status.discovered?.access?.zone);
  };
  await discoverBy({});
  await vi.waitFor(async () => expect(await zones()).toEqual(["spoke", "spoke", "spoke"]), 60_000);
  await discoverBy({ access: { zonesByVpc: { [vpc]: "fixed" } } });
  await vi.waitFor(async () => expect(await zones()).toEqual(["fixed", "fixed", "fixed"]), 60_000);
  const cli = openWorldCli(stack);
  const { out } = await cli.run(["get", "clusters", "-o", "wide"]);
  cli.close();
  const [head = "", ...rows] = out.trimEnd().split("\n");
  const column = head.indexOf("ZONE");
  expect(rows.map((row) => row.slice(column).split(" ")[0])).toEqual(["fixed", "fixed", "fixed"]);
}, 180_000);
