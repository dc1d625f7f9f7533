/** Ownership of an ARN and of a name when two discoveries find it, and the accounts of an organization. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const [first, second] = ["444455556666", "777788889999"] as const;
const spec = { name: "{{ eks.name }}", interval: "6h", gone: { after: "24h", action: "Forget" } };
let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  for (const account of [first, second]) world.trust(account, "apps", "data");
});

afterEach(() => world.stop());

async function fleet(): Promise<readonly (readonly [string, string | undefined])[]> {
  return (await world.fleet()).map(({ name, arn }) => [name, arn] as const);
}

test("an ARN that two ClusterDiscoveries find at once is one Cluster, which belongs to the first one", async () => {
  for (const name of ["a", "b", "c"]) world.add(arnOf(name, first));
  await world.apply(
    discoveryDocument("apps", { accounts: [first] }, spec),
    discoveryDocument("data", { accounts: [first] }, { ...spec, name: "data-{{ eks.name }}" }),
  );
  await Promise.all([world.scan("apps"), world.scan("data")]);
  const owned = (await world.found()).map(({ arn, by, cluster }) => ({ arn, by, cluster }));
  expect(owned.map(({ arn }) => arn)).toEqual(["a", "b", "c"].map((name) => arnOf(name, first)));
  expect(await fleet()).toEqual(
    owned.map(({ arn, cluster }) => [cluster, arn] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  const before = await fleet();
  world.pass(6);
  await Promise.all([world.scan("data"), world.scan("apps")]);
  expect(await fleet()).toEqual(before);
  const refused = [
    ...((await world.row("apps")).status.refused ?? []),
    ...((await world.row("data")).status.refused ?? []),
  ];
  expect(refused.map(({ reason }) => reason)).toEqual(["FoundByAnother", "FoundByAnother", "FoundByAnother"]);
});

test("two discoveries that find new clusters with a name in use register neither, and its Cluster stays", async () => {
  world.add(arnOf("a", first));
  await world.apply(discoveryDocument("apps", { accounts: [first] }, spec));
  await world.scan("apps");
  const owner = await world.cluster("a");
  world.add(arnOf("a", second));
  world.add(arnOf("a", first, "us-east-1"));
  const regions = { regions: ["eu-west-1", "us-east-1"] };
  await world.apply(
    discoveryDocument("apps", { accounts: [first], ...regions }, spec),
    discoveryDocument("data", { accounts: [second], ...regions }, spec),
  );
  await Promise.all([world.scan("apps"), world.scan("data")]);
  expect(await fleet()).toEqual([["a", arnOf("a", first)]]);
  expect((await world.cluster("a"))?.uid).toBe(owner?.uid);
  expect((await world.row("apps")).status.refused).toMatchObject([
    { arn: arnOf("a", first, "us-east-1"), reason: "NameCollision" },
  ]);
  const [refused] = (await world.row("data")).status.refused ?? [];
  expect(refused).toMatchObject({ arn: arnOf("a", second), reason: "NameCollision" });
  expect(refused?.message).toContain(`which is that of the Cluster at ${arnOf("a", first)}`);
});

test("a cluster with the name of one that is gone waits until that one is forgotten, and inherits nothing", async () => {
  world.add(arnOf("a", first));
  await world.apply(discoveryDocument("apps", { accounts: [first, second] }, spec));
  await world.scan("apps");
  const before = await world.cluster("a");
  const seen = { clusterUid: "uid-of-the-first", inventory: "inventories/a/0.json" };
  await world.table.write([{ put: syncRowOf("a", { observed: seen }) }]);
  world.clusters.remove(arnOf("a", first));
  world.add(arnOf("a", second));
  for (let scan = 1; scan <= 4; scan++) {
    world.pass(6);
    await world.scan("apps");
    expect(await fleet()).toEqual([["a", arnOf("a", first)]]);
    expect((await world.row("apps")).status.refused).toMatchObject([{ arn: arnOf("a", second) }]);
  }
  for (let scan = 5; scan <= 6; scan++) {
    world.pass(6);
    await world.scan("apps");
  }
  expect(await fleet()).toEqual([["a", arnOf("a", second)]]);
  const after = await world.cluster("a");
  expect(after?.uid).not.toBe(before?.uid);
  expect(after?.status).toEqual({ conditions: [] });
  const sync = await world.table.get(keys.sync("a", "shop", "web.app"));
  expect(sync?.observed).toBeUndefined();
  expect(sync?.desired.action).toBe("orphan");
});

test("a cluster made anew under its ARN keeps its Cluster and recorded identity, so that its worker notices another one", async () => {
  world.add(arnOf("a", first));
  await world.apply(discoveryDocument("apps", { accounts: [first] }, spec));
  await world.scan("apps");
  const row = await world.cluster("a");
  if (row === undefined) throw new Error("a is not there");
  const known = { ...row, status: { ...row.status, uid: "uid-of-the-first" }, version: row.version + 1 };
  await world.table.write([{ put: known }]);
  world.clusters.remove(arnOf("a", first));
  world.pass(6);
  await world.scan("apps");
  world.add(arnOf("a", first), {}, { createdAt: new Date("2026-11-23T13:00:00Z") });
  world.pass(6);
  await world.scan("apps");
  const after = await world.cluster("a");
  expect(after).toMatchObject({ uid: row.uid, status: { uid: "uid-of-the-first" } });
  expect(after?.discovered).toMatchObject({ createdAt: "2026-11-23T13:00:00.000Z" });
  expect(after?.discovered?.goneSince).toBeUndefined();
});

test("the accounts of an organization are those in and below its units, except excluded and closed ones", async () => {
  const management = "999900001111";
  const [one, two, three, four, five] = [1, 2, 3, 4, 5].map((at) => String(222_200_000_000 + at)) as [
    string,
    string,
    string,
    string,
    string,
  ];
  world.trust(management, "apps");
  for (const account of [one, two, three, four, five]) {
    world.trust(account, "apps");
    world.add(arnOf(`in-${account.slice(-1)}`, account));
  }
  const active = (id: string) => ({ id, state: "ACTIVE" as const });
  const [outer, inner, other] = ["ou-ab12-aaaaaaaa", "ou-ab12-bbbbbbbb", "ou-ab12-cccccccc"] as const;
  world.organize({
    account: management,
    units: new Map([
      [outer, { units: [inner], accounts: [active(one), active(two)] }],
      [inner, { units: [], accounts: [active(three), { id: four, state: "SUSPENDED" as const }] }],
      [other, { units: [], accounts: [active(five)] }],
    ]),
  });
  const organization = { account: management, ous: [outer], exclude: [two] };
  await world.apply(discoveryDocument("apps", { organization }, spec));
  await world.scan("apps");
  expect((await fleet()).map(([name]) => name)).toEqual(["in-1", "in-3"]);
  expect((await world.row("apps")).status.accounts).toBe(2);
  // When the organization can no longer be read, the found clusters stay unchanged.
  world.organize({ account: "000000000009", units: new Map() });
  world.pass(6);
  await world.scan("apps");
  expect((await fleet()).map(([name]) => name)).toEqual(["in-1", "in-3"]);
  const [ready] = (await world.row("apps")).status.conditions;
  expect(ready).toMatchObject({ status: "False", reason: "AccountUnavailable" });
});
