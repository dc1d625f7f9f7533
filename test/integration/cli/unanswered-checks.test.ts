/** A check that no worker makes ends after a bounded time, and names the zone whose workers did not answer. */

import { expect, test } from "vitest";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const far = "https://sqs.eu-north-1.amazonaws.com/444455556666/starling-zone-far-apply";
const zones = parseZoneNetworks("spoke=subnets,fixed=vpc+203.0.113.7,far=subnets,farvpc=vpc,farnone=none", {
  queues: new Map(["far", "farvpc", "farnone"].map((zone) => [zone, far])),
});
const cli = forEachTest(() => startCliFixture({ zoneNetworks: zones }));

/** A clock that is 15 seconds later at each look: the test does not wait, and the API still takes the signatures. */
function hurriedClock(): () => Date {
  let at = Date.now();
  return () => {
    at += 15_000;
    return new Date(at);
  };
}

test.each(["home", "spoke"])(
  "a check that no worker of the zone %s makes is unknown, and names the zone",
  async (zone) => {
    await cli.table.write([
      { put: clusterRow({ eks: { arn: "arn:aws:eks:eu-west-1:444455556666:cluster/c1" }, access: { zone } }) },
    ]);
    const { code, out, err } = await cli.run("cluster check c1 -o wide", { now: hurriedClock() });
    expect(code).toBe(3);
    expect(out).toContain(`NotTaken: no worker of the zone ${zone} has run the check within 90 s`);
    expect(err).toContain("the errors of the zone's function apply on the dashboard: `starling doctor`");
    // Only a network without a NAT gateway can lack endpoints.
    expect(err.includes("the zone needs endpoints for DynamoDB, S3, SQS, STS and EKS")).toBe(zone !== "home");
  },
);

test.each([
  ["spoke", "the monthly cost of the zone is not known, because no worker has run the check"],
  ["farvpc", "the monthly cost of the zone is not known, because no worker has run the check"],
  ["farnone", "the zone runs outside of every VPC, and pays for no endpoint and no NAT gateway"],
])("the cost of the network of %s is said as far as it is known without a worker's look", async (zone, cost) => {
  const { code, out, err } = await cli.run(`zone check ${zone}`, { now: hurriedClock() });
  expect(code).toBe(3);
  expect(out).toContain(`NotTaken: no worker of the zone ${zone} has run the check within 90 s`);
  expect(out).not.toContain("ENDPOINT");
  expect(err).toContain(cost);
});

test.each([
  ["spoke", "subnets", "the VPC needs a gateway endpoint of DynamoDB"],
  ["fixed", "vpc", "look at the NAT gateway and the gateway endpoint of DynamoDB"],
  ["home", "none", "dead letters: `starling doctor`"],
  ["far", "subnets", "need a way to STS of their region and to DynamoDB of Starling's region"],
  ["farvpc", "vpc", "look at the NAT gateway of the VPC in the zone's account and region"],
  ["farnone", "none", "dead letters: `starling doctor`; its workers log in /starling/"],
])("a check of the zone %s that no worker takes ends with exit code 3, in a network %s", async (zone, type, remedy) => {
  const workedAt = "2026-11-21T08:00:00.000Z";
  await cli.table.write([
    { put: { ...keys.zone(zone), type: "Zone", schema: rowSchema, version: 1, workedAt } as never },
  ]);
  const { code, out } = await cli.run(`zone check ${zone} -o json`, { now: hurriedClock() });
  expect(code).toBe(3);
  const found = JSON.parse(out);
  expect(found).toMatchObject({
    ...{ kind: "ZoneCheck", metadata: { name: zone }, result: "unknown", network: { type }, services: [] },
    worker: {
      ...{ state: "unknown", code: "NotTaken" },
      message: `no worker of the zone ${zone} has run the check within 90 s; the last sign of one is of ${workedAt}`,
      remedy: expect.stringContaining(remedy),
    },
  });
  const { out: text, err } = await cli.run(`zone check ${zone}`, { now: hurriedClock() });
  expect(text).toMatch(/worker +unknown .*NotTaken: no worker of the zone/);
  expect(err).toContain(remedy);
});
