import { afterEach, beforeEach, expect, test } from "vitest";
import type { Table } from "#shared/ports.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { addDiscoveryFleet, fleetAccounts, fleetArns, fleetDiscoveries } from "#test/support/discovery-fleet.ts";
import { type DiscoveryWorld, startDiscoveryWorld } from "#test/support/discovery-world.ts";

let world: DiscoveryWorld;

beforeEach(async () => {
  world = await startDiscoveryWorld();
  await addDiscoveryFleet(world);
});

afterEach(() => world.stop());

async function scanAll(table: Table = world.table): Promise<void> {
  await Promise.all(fleetDiscoveries.map((name) => world.scan(name, { table })));
}

const throttled = { status: 429, code: "TooManyRequestsException", message: "Rate exceeded" };
const off = {
  status: 403,
  code: "UnrecognizedClientException",
  message: "The security token included in the request is invalid.",
};

test("400 clusters of 30 accounts are found, each with the values of its tags", async () => {
  await scanAll();
  const fleet = await world.fleet();
  expect(fleet).toHaveLength(400);
  expect(fleet[0]).toMatchObject({
    name: "c000",
    arn: fleetArns[0],
    labels: {
      ring: "canary",
      "starling.dev/account": "500000000000",
      "starling.dev/region": "eu-west-1",
      "starling.dev/version": "1.36",
    },
    values: { domain: "c0.example.com" },
  });
  expect(fleet.filter(({ labels }) => labels.ring === "canary")).toHaveLength(20);
  const { status } = await world.row("edge");
  expect(status.clusters).toEqual({ found: 133, refused: 0, unselected: 0, gone: 0 });
  expect(status.conditions).toMatchObject([
    { type: "Ready", status: "True", reason: "Discovered", message: "133 clusters of 10 accounts" },
  ]);
});

test("a scan finds all other clusters despite throttles, a disabled region and an account that refuses", async () => {
  const refusing = fleetAccounts[0] ?? "";
  const offHere = fleetAccounts[1] ?? "";
  world.distrust(refusing);
  let calls = 0;
  let isBusy = true;
  world.fail(({ service, principalArn }) => {
    calls += 1;
    if (service !== "sts" && principalArn.includes(`:${offHere}:`)) return off;
    return isBusy && service !== "sts" && calls % 5 === 0 ? throttled : undefined;
  });
  await scanAll();
  const unseen = fleetArns.filter((arn) => arn.includes(refusing) || arn.includes(offHere));
  // Throttles may occur three times in a row, and the next scans find the remaining clusters.
  for (let round = 0; round < 5 && (await world.fleet()).length < 400 - unseen.length; round++) {
    world.pass(1);
    await scanAll();
  }
  isBusy = false;
  world.pass(1);
  await scanAll();
  const arns = (await world.fleet()).map(({ arn }) => arn);
  expect(arns.toSorted()).toEqual(fleetArns.filter((arn) => !unseen.includes(arn)).toSorted());
  const apps = (await world.row("apps")).status;
  expect(apps.unseen).toMatchObject([{ account: refusing, code: "RoleDenied" }]);
  const [ready] = apps.conditions;
  expect(ready).toMatchObject({ type: "Ready", status: "False", reason: "Incomplete" });
  expect(ready?.message).toContain(
    `account ${refusing} eu-west-1: Starling may not assume role arn:aws:iam::${refusing}:role/starling/discovery/scan`,
  );
  expect(ready?.message).toContain("where sts:ExternalId is starling.111122223333.us-east-1/discovery/apps");
  expect((await world.row("data")).status.unseen).toMatchObject([
    { account: offHere, region: "eu-west-1", code: "RegionOff" },
  ]);
});

test("no cluster counts as gone because of throttles, disabled regions, refusals, partial answers or empty lists", async () => {
  await scanAll();
  const before = await world.fleet();
  const failures = [
    () => throttled,
    () => off,
    () => ({ status: 403, code: "AccessDeniedException", message: "no" }),
    () => ({ status: 500, code: "InternalFailure", message: "oh" }),
    () => ({ status: 200, code: "Nothing", message: "half" }),
    () => ({ status: 404, code: "NotFoundException", message: "no such path" }),
  ];
  for (const failure of failures) {
    world.fail(({ service }) => (service === "sts" ? undefined : failure()));
    world.pass(48);
    await scanAll();
  }
  for (const account of fleetAccounts) world.distrust(account);
  world.fail(undefined);
  world.pass(48);
  await scanAll();
  expect(await world.fleet()).toEqual(before);
  expect((await world.found()).filter(({ goneSince }) => goneSince !== undefined)).toEqual([]);
}, 120_000);

test("a scan that finds nothing new describes no cluster, and writes only that it ran", async () => {
  await scanAll();
  const before = await world.found();
  world.operations();
  world.sender.take();
  world.pass(1);
  const { table, counts: ofTable } = countedTable(world.table);
  await scanAll(table);
  // Each scan marks its row, reads the found clusters (an empty page and a full one in this table), and notes its end.
  expect(ofTable.requests).toBe(fleetDiscoveries.length * 4);
  const counts = Object.fromEntries(
    Map.groupBy(world.operations(), (operation) => operation)
      .entries()
      .map(([operation, calls]) => [operation, calls.length]),
  );
  expect(counts).toEqual({ "sts AssumeRole": 30, "tagging GetResources": 30, "eks ListClusters": 10 });
  expect(await world.found()).toEqual(before);
  expect(world.sender.take()).toEqual([]);
});
