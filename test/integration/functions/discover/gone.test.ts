import { afterEach, beforeEach, expect, test } from "vitest";
import type { CallFailure } from "#local/aws/eks/eks-sts-server.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { arnOf, type DiscoveryWorld, discoveryDocument, startDiscoveryWorld } from "#test/support/discovery-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const account = "444455556666";
const gone = { after: "24h", action: "Forget", maxPerDay: 1 };
let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  world.trust(account, "apps");
});

afterEach(() => world.stop());

function spec(more: object = {}): object {
  return { name: "{{ eks.name }}", interval: "6h", gone, ...more };
}

/** Makes clusters `c0` and so on, found, with a group that selects them all. */
async function found(count: number, more: object = {}): Promise<void> {
  for (let at = 0; at < count; at++) world.add(arnOf(`c${at}`, account));
  await world.apply(discoveryDocument("apps", { accounts: [account] }, spec(more)), {
    apiVersion: "starling.dev/v1alpha1",
    kind: "SyncGroup",
    metadata: { namespace: "shop", name: "web" },
    spec: { clusters: { all: true }, templates: [{ name: "app", source: "app", path: "all" }] },
  });
  await world.scan("apps");
  expect(await names()).toHaveLength(count);
}

async function names(): Promise<readonly string[]> {
  return (await world.fleet()).map(({ name }) => name);
}

/** Runs scans, six hours apart. */
async function scans(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    world.pass(6);
    await world.scan("apps");
  }
}

async function condition(type: string) {
  return (await world.row("apps")).status.conditions.find((each) => each.type === type);
}

async function goneSince(name: string): Promise<string | undefined> {
  return (await world.cluster(name))?.discovered?.goneSince;
}

const rowsOf = (rows: readonly Row[], cluster: string) => rows.filter(({ pk }) => pk === `CL#${cluster}`);

test("a cluster that its account denies for a day is forgotten, and no other is touched", async () => {
  await found(3);
  await world.table.write([
    { put: syncRowOf("c0", { observed: { at: "2026-11-23T06:00:00.000Z" } }) },
    { put: syncRowOf("c1", { observed: {} }) },
  ]);
  const before = world.table.all();
  world.clusters.remove(arnOf("c0", account));
  await scans(4);
  expect(await names()).toEqual(["c0", "c1", "c2"]);
  expect(await goneSince("c0")).toBe("2026-11-23T12:00:00.000Z");
  world.sender.take();
  await scans(1);
  expect(await names()).toEqual(["c1", "c2"]);
  expect(await world.cluster("c0")).toBeUndefined();
  const sync = await world.table.get(keys.sync("c0", "shop", "web.app"));
  expect(sync?.desired).toMatchObject({ action: "orphan", attempt: 2 });
  expect(sync?.observed).toBeUndefined();
  expect(world.sender.take()).toEqual([
    { to: "rollout", owner: { namespace: "shop", kind: "SyncGroup", name: "web" }, clusters: [] },
  ]);
  const after = world.table.all();
  for (const other of ["c1", "c2"]) expect(rowsOf(after, other)).toEqual(rowsOf(before, other));
  const { status } = await world.row("apps");
  expect(status.clusters).toEqual({ found: 2, refused: 0, unselected: 0, gone: 0 });
  expect(status.forgotten).toEqual([{ cluster: "c0", arn: arnOf("c0", account), at: "2026-11-24T12:00:00.000Z" }]);
  expect(await condition("GoneForgotten")).toBeUndefined();
  // The record of the forgotten cluster ends, too.
  await scans(4);
  expect((await world.found()).map(({ arn }) => arn)).not.toContain(arnOf("c0", account));
  expect((await world.row("apps")).status.forgotten).toBeUndefined();
});

test("a cluster stays for ever without `gone`", async () => {
  await found(2, { gone: undefined });
  world.clusters.remove(arnOf("c0", account));
  for (let day = 0; day < 5; day++) {
    world.pass(30);
    await world.scan("apps");
  }
  expect(await names()).toEqual(["c0", "c1"]);
  expect(await goneSince("c0")).toBe("2026-11-24T12:00:00.000Z");
});

const failures: readonly (readonly [string, CallFailure])[] = [
  ["a throttle", { status: 429, code: "TooManyRequestsException", message: "Rate exceeded" }],
  ["a region that is off", { status: 403, code: "UnrecognizedClientException", message: "invalid" }],
  ["a refusal", { status: 403, code: "AccessDeniedException", message: "no" }],
  ["a failure", { status: 500, code: "InternalFailure", message: "oh" }],
  ["half an answer", { status: 200, code: "Nothing", message: "half" }],
  ["another 404", { status: 404, code: "NotFoundException", message: "no such path" }],
];

test.each(failures)(
  "%s for two days does not prove that a cluster is gone",
  async (_, failure) => {
    await found(2);
    world.clusters.remove(arnOf("c0", account));
    world.fail(({ operation }) => (operation === "DescribeCluster" ? failure : undefined));
    for (let at = 0; at < 5; at++) {
      world.pass(10);
      await world.scan("apps");
    }
    expect(await names()).toEqual(["c0", "c1"]);
    expect(await goneSince("c0")).toBeUndefined();
  },
  120_000,
);

test("an account that refuses in the middle of the day restarts the day", async () => {
  await found(2);
  world.clusters.remove(arnOf("c0", account));
  await scans(2);
  world.distrust(account);
  await scans(3);
  world.trust(account, "apps");
  await scans(4);
  expect(await names()).toEqual(["c0", "c1"]);
  expect(await goneSince("c0")).toBe("2026-11-24T18:00:00.000Z");
  await scans(1);
  expect(await names()).toEqual(["c1"]);
});

test("two scans that fail in the middle of the day do not restart it", async () => {
  await found(2);
  world.clusters.remove(arnOf("c0", account));
  await scans(2);
  world.distrust(account);
  await scans(2);
  world.trust(account, "apps");
  await scans(1);
  expect(await names()).toEqual(["c1"]);
});

test("a cluster that exists again in the middle of the day is no longer gone, and the day restarts", async () => {
  await found(2);
  world.clusters.remove(arnOf("c0", account));
  await scans(4);
  world.add(arnOf("c0", account));
  await scans(1);
  expect(await goneSince("c0")).toBeUndefined();
  world.clusters.remove(arnOf("c0", account));
  await scans(4);
  expect(await names()).toEqual(["c0", "c1"]);
  await scans(1);
  expect(await names()).toEqual(["c1"]);
});

test("a cluster that answers Starling meanwhile is not forgotten, whatever its account says", async () => {
  await found(2);
  world.clusters.remove(arnOf("c0", account));
  await scans(4);
  const row = await world.cluster("c0");
  if (row === undefined) throw new Error("c0 is not there");
  const seen = { ...row, status: { ...row.status, lastSeenAt: world.now().toISOString() }, version: row.version + 1 };
  await world.table.write([{ put: seen }]);
  await scans(4);
  expect(await names()).toEqual(["c0", "c1"]);
  const late = syncRowOf("c0", { observed: { at: world.now().toISOString() } });
  await world.table.write([{ put: late }]);
  await scans(4);
  expect(await names()).toEqual(["c0", "c1"]);
  await scans(1);
  expect(await names()).toEqual(["c1"]);
});

test("clusters beyond maxPerDay wait for the next day, and are named", async () => {
  await found(40, { gone: { ...gone, maxPerDay: "5%" } });
  for (const name of ["c0", "c1", "c2", "c3", "c4", "c5"]) world.clusters.remove(arnOf(name, account));
  await scans(5);
  expect(await names()).toHaveLength(38);
  expect(await condition("GoneForgotten")).toMatchObject({
    status: "False",
    reason: "MaxPerDay",
    message:
      "4 clusters gone for longer than 24h, and not forgotten yet (c2, c3, c4 and 1 more): spec.gone.maxPerDay 5% lets 2 of 40 go within 24 hours, and 2 went; if that many are meant to be gone, raise it, or: starling delete cluster NAME --cascade orphan",
  });
  await scans(3);
  expect(await names()).toHaveLength(38);
  await scans(1);
  expect(await names()).toHaveLength(36);
  expect((await world.row("apps")).status.clusters).toMatchObject({ found: 36, gone: 2 });
});

test("the next scan forgets the remaining clusters after somebody raises maxPerDay", async () => {
  await found(4);
  for (const name of ["c0", "c1", "c2"]) world.clusters.remove(arnOf(name, account));
  await scans(5);
  expect(await names()).toEqual(["c1", "c2", "c3"]);
  await world.apply(discoveryDocument("apps", { accounts: [account] }, spec({ gone: { ...gone, maxPerDay: "100%" } })));
  await scans(1);
  expect(await names()).toEqual(["c3"]);
});

test("a Cluster that people wrote is kept when it is gone; labels of people on a discovered Cluster are forgotten with it", async () => {
  const version = "starling.dev/v1alpha1";
  await found(3, { gone: { ...gone, maxPerDay: 3 } });
  const eks = { arn: arnOf("c0", account) };
  await world.apply(
    { apiVersion: version, kind: "Cluster", metadata: { name: "c0" }, spec: { eks } },
    { apiVersion: version, kind: "Cluster", metadata: { name: "c1", labels: { env: "prod" } }, spec: {} },
  );
  for (const name of ["c0", "c1"]) world.clusters.remove(arnOf(name, account));
  await scans(5);
  expect(await names()).toEqual(["c0", "c2"]);
  expect(await condition("GoneForgotten")).toMatchObject({
    reason: "RegisteredByHand",
    message: "c0 is gone and kept: somebody wrote it: starling delete cluster c0 --cascade orphan",
  });
});

test("a cluster that is made anew after it was forgotten is a new Cluster", async () => {
  await found(2);
  const before = await world.cluster("c0");
  world.clusters.remove(arnOf("c0", account));
  await scans(5);
  world.add(arnOf("c0", account), {}, { createdAt: new Date("2026-11-24T08:00:00Z") });
  await scans(1);
  const after = await world.cluster("c0");
  expect(await names()).toEqual(["c0", "c1"]);
  expect(after?.uid).not.toBe(before?.uid);
  expect(after?.discovered?.goneSince).toBeUndefined();
  expect(await goneSince("c0")).toBeUndefined();
});
