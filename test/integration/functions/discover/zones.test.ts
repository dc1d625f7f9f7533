/** A discovered cluster is reached from the zone of its VPC, unless somebody wrote another one. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { due, dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const account = "444455556666";
const [inSpoke, inFixed, elsewhere] = ["vpc-0a1b2c3d4e5f60718", "vpc-1a1b2c3d4e5f60718", "vpc-2a1b2c3d4e5f60718"];
const role = { name: "starling/clusters/apply" };
let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  world.trust(account, "apps");
  world.add(arnOf("a", account), {}, { vpcId: inSpoke });
  world.add(arnOf("b", account), {}, { vpcId: inFixed });
  world.add(arnOf("c", account), {}, { vpcId: elsewhere });
});

afterEach(() => world.stop());

async function discoverBy(access: object | undefined): Promise<void> {
  const spec = { name: "{{ eks.name }}", interval: "6h", ...(access === undefined ? {} : { access }) };
  await world.apply(discoveryDocument("apps", { accounts: [account] }, spec));
}

/** The zones in the fleet's directory, by which the senders choose queues. */
async function zones(): Promise<readonly (string | undefined)[]> {
  return (await world.fleet()).map(({ zone }) => zone);
}

test("a cluster gets the zone of its VPC, and another one the zone of all clusters", async () => {
  await discoverBy({ role, zonesByVpc: { [inSpoke]: "spoke", [inFixed]: "fixed" } });
  await world.scan("apps");
  expect(await zones()).toEqual(["spoke", "fixed", undefined]);
  expect((await world.cluster("a"))?.discovered?.access).toEqual({ role, zone: "spoke" });
  expect((await world.cluster("c"))?.discovered?.access).toEqual({ role });

  await discoverBy({ zone: "fixed", zonesByVpc: { [inSpoke]: "spoke", [elsewhere]: "home" } });
  await world.scan("apps");
  expect(await zones()).toEqual(["spoke", "fixed", undefined]);
  expect((await world.cluster("b"))?.discovered?.access).toEqual({ zone: "fixed" });

  await discoverBy(undefined);
  await world.scan("apps");
  expect(await zones()).toEqual([undefined, undefined, undefined]);
  expect(await world.cluster("a")).not.toHaveProperty("discovered.access");
});

test("rows with zones are of the schema that an older version leaves alone, and go back with them", async () => {
  const schemas = async () => [
    (await world.row("apps")).schema,
    (await world.cluster("a"))?.schema,
    ...(await world.fleet()).map(({ schema }) => schema),
  ];
  await discoverBy({ zonesByVpc: { [inSpoke]: "spoke" } });
  await world.scan("apps");
  expect(await schemas()).toEqual([newestRowSchema, newestRowSchema, newestRowSchema, rowSchema, rowSchema]);
  await discoverBy({ role });
  await world.scan("apps");
  expect(await schemas()).toEqual([rowSchema, rowSchema, rowSchema, rowSchema, rowSchema]);
});

test("a cluster that is created again in another VPC is reached from the zone of that VPC", async () => {
  await discoverBy({ zonesByVpc: { [inSpoke]: "spoke", [inFixed]: "fixed" } });
  await world.scan("apps");
  world.clusters.remove(arnOf("a", account));
  world.pass(6);
  await world.scan("apps");
  expect(await world.cluster("a")).toMatchObject({ discovered: { goneSince: expect.any(String) } });
  expect(await zones()).toEqual(["spoke", "fixed", undefined]);

  world.add(arnOf("a", account), {}, { vpcId: inFixed, createdAt: world.now() });
  world.pass(6);
  await world.scan("apps");
  expect(await zones()).toEqual(["fixed", "fixed", undefined]);

  // No scan has seen that it did not exist: the daily description notices it.
  world.add(arnOf("a", account), {}, { vpcId: elsewhere, createdAt: world.now() });
  world.pass(30);
  await world.scan("apps");
  expect(await zones()).toEqual([undefined, "fixed", undefined]);
});

test("the setting of zones counts where the ClusterDiscovery says nothing, and a change of it at the next scan", async () => {
  await discoverBy({ role });
  await world.scan("apps");
  expect(await zones()).toEqual([undefined, undefined, undefined]);

  world.operations();
  world.pass(6);
  const zonesOfVpcs = new Map([
    [inSpoke, "spoke"],
    [inFixed, "spoke"],
  ]);
  await world.scan("apps", { zonesOfVpcs });
  expect(await zones()).toEqual(["spoke", "spoke", undefined]);
  expect(world.operations().filter((each) => each === "eks DescribeCluster")).toHaveLength(2);

  world.pass(6);
  await world.scan("apps", { zonesOfVpcs });
  expect(world.operations().filter((each) => each === "eks DescribeCluster")).toHaveLength(0);

  await discoverBy({ zonesByVpc: { [inFixed]: "fixed" } });
  await world.scan("apps", { zonesOfVpcs });
  expect(await zones()).toEqual(["spoke", "fixed", undefined]);
  await discoverBy({ zone: "home" });
  await world.scan("apps", { zonesOfVpcs });
  expect(await zones()).toEqual([undefined, undefined, undefined]);
});

test("a cluster that a version without zones described is asked about once when the setting names VPCs", async () => {
  await discoverBy({ role });
  await world.scan("apps");
  for (const row of await world.found()) {
    const { vpcId: _vpcId, ...older } = row;
    await world.table.write([{ put: { ...older, version: row.version + 1 } }]);
  }
  world.pass(6);
  await world.scan("apps", { zonesOfVpcs: new Map([[inSpoke, "spoke"]]) });
  expect(await zones()).toEqual(["spoke", undefined, undefined]);
  world.operations();
  world.pass(6);
  await world.scan("apps", { zonesOfVpcs: new Map([[inSpoke, "spoke"]]) });
  expect(world.operations().filter((each) => each === "eks DescribeCluster")).toHaveLength(0);
});

test("a scan that puts a cluster into another zone makes the Syncs due that wait for it, and those of no other cluster", async () => {
  await discoverBy({ role, zonesByVpc: { [inSpoke]: "fixed", [inFixed]: "fixed" } });
  await world.scan("apps");
  const waits = (cluster: string): SyncRow => {
    const row = syncRow(cluster, "shop.web", { phase: "Unreachable" });
    const nextAt = later(world.now(), 300);
    return due({ ...row, observed: { ...(row.observed as Observed), nextAt } }, nextAt);
  };
  await world.table.write([{ put: waits("a") }, { put: waits("b") }]);
  const dueOf = async (cluster: string) => {
    const row = await world.table.get(keys.sync(cluster, "payments", "shop.web"));
    return dueAtOf(row?.dueKey ?? "");
  };
  await discoverBy({ role, zonesByVpc: { [inSpoke]: "spoke", [inFixed]: "fixed" } });
  await world.scan("apps");
  expect(await zones()).toEqual(["spoke", "fixed", undefined]);
  expect([await dueOf("a"), await dueOf("b")]).toEqual([world.now().toISOString(), later(world.now(), 300)]);
});

test("the zone that people write for a cluster goes before the one of its VPC", async () => {
  await discoverBy({ role, zonesByVpc: { [inSpoke]: "spoke", [inFixed]: "spoke" } });
  await world.scan("apps");
  const spec = { access: { zone: "fixed" } };
  await world.apply({ apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata: { name: "a" }, spec });
  world.pass(30);
  await world.scan("apps");
  expect(await zones()).toEqual(["fixed", "spoke", undefined]);
  expect(await world.cluster("a")).toMatchObject({ spec, discovered: { access: { role, zone: "spoke" } } });
});

test("the address that people write for a cluster stays when it is scanned again, and goes with the zone of its VPC", async () => {
  await discoverBy({ role, zonesByVpc: { [inSpoke]: "spoke" } });
  await world.scan("apps");
  const { uid } = (await world.fleet())[0] ?? {};
  const spec = { eks: { arn: arnOf("a", account), endpointOverride: { server: "https://a.eks.corp.example" } } };
  await world.apply({ apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata: { name: "a" }, spec });
  world.pass(30);
  await world.scan("apps");
  expect(await world.cluster("a")).toMatchObject({ spec, schema: newestRowSchema, discovered: { access: { role } } });
  expect((await world.fleet())[0]).toMatchObject({ zone: "spoke", arn: spec.eks.arn, uid });
});

test("zones that the installation lacks are refused with the field, the value and the remedy", async () => {
  await expect(discoverBy({ zone: "spok", zonesByVpc: { [inSpoke]: "lab", [inFixed]: "home" } })).rejects.toMatchObject(
    {
      data: {
        problems: [
          {
            field: "spec.access.zone",
            message: "is spok, but the installation has only the zones home, spoke, fixed; did you mean spoke?",
          },
          {
            field: `spec.access.zonesByVpc.${inSpoke}`,
            message:
              "is lab, but the installation has only the zones home, spoke, fixed; an operator adds it to the setting zones",
          },
        ],
      },
    },
  );
});

test("a discovered cluster whose name its zone does not serve is not registered, and one that is there already stays where it was", async () => {
  const zonesOfVpcs = new Map([[inSpoke, "spoke"]]);
  const narrow = { zonesOfVpcs, served: new Map([["spoke", ["eu-*"]]]) };
  await discoverBy({ role });
  await world.scan("apps", narrow);
  expect(await zones()).toEqual([undefined, undefined]);
  expect(await world.cluster("a")).toBeUndefined();
  const [refused] = (await world.row("apps")).status.refused ?? [];
  expect(refused).toEqual({
    arn: arnOf("a", account),
    reason: "NameNotServed",
    message:
      "its zone would be spoke, which serves clusters named eu-*, and not a; name another zone, or an operator adds the name to the field clusterNames of zone spoke in the setting zones and deploys",
  });

  world.pass(6);
  await world.scan("apps", { zonesOfVpcs, served: new Map([["spoke", ["a"]]]) });
  expect(await zones()).toEqual(["spoke", undefined, undefined]);
  expect((await world.row("apps")).status.refused ?? []).toEqual([]);

  // Its own condition says it: the worker of home reports the cluster.
  world.pass(30);
  await world.scan("apps", narrow);
  expect(await zones()).toEqual(["spoke", undefined, undefined]);
  expect((await world.row("apps")).status.refused ?? []).toEqual([]);

  world.pass(6);
  await world.scan("apps", { zonesOfVpcs: new Map([[inFixed, "spoke"]]), served: narrow.served });
  expect(await zones()).toEqual([undefined, undefined, undefined]);
  expect((await world.row("apps")).status.refused).toMatchObject([
    { arn: arnOf("b", account), reason: "NameNotServed" },
  ]);
});
