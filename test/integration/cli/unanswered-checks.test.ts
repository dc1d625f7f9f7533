/** A check that no worker makes ends after a bounded time, and names the zone whose workers did not answer. */

import { expect, test } from "vitest";
import { parseZoneAddresses } from "#shared/fleet/api/zone-object.ts";
import { startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const cli = forEachTest(() => startCliFixture({ zoneNetworks: parseZoneAddresses("spoke=") }));

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

test("the cost of existing subnets is not known when no worker of the zone has looked at them", async () => {
  const { code, out, err } = await cli.run("zone check spoke", { now: hurriedClock() });
  expect(code).toBe(3);
  expect(out).toContain("NotTaken: no worker of the zone spoke has run the check within 90 s");
  expect(out).not.toContain("ENDPOINT");
  expect(err).toContain("the monthly cost of the zone is not known, because no worker has run the check");
});
