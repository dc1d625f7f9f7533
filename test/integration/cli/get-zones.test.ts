/** `starling get zones` lists the places from which clusters are reached, and counts their clusters. */

import { beforeEach, expect, test } from "vitest";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { silenceUpdate, zoneUpdate } from "#shared/fleet/rows/zone-row.ts";
import { startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const cli = forEachTest(() =>
  startCliFixture({
    zoneNetworks: parseZoneNetworks("fixed=vpc+203.0.113.7+203.0.113.8,spoke=subnets", {
      queues: new Map([
        ["fixed", "https://sqs.eu-west-1.amazonaws.com/111122223333/apply-fixed"],
        ["spoke", "https://sqs.eu-north-1.amazonaws.com/444455556666/starling-zone-spoke-apply"],
      ]),
      served: new Map([["spoke", ["eu-*", "b"]]]),
    }),
    resolveZone: "fixed",
  }),
);
const ranAt = new Date(Date.now() - 90_000);

/** Registers a cluster; without a zone it is in `home`. */
async function register(name: string, { zone, answers }: { zone?: string; answers: "True" | "False" }): Promise<void> {
  const arn = `arn:aws:eks:eu-west-1:444455556666:cluster/${name}`;
  const conditions = [
    { type: "Reachable", status: answers, reason: "Checked", message: "", since: "2026-11-23T08:00:00Z" } as const,
  ];
  const spec = { eks: { arn }, ...(zone === undefined ? {} : { access: { zone } }) };
  const row = { ...clusterRow(spec), ...keys.cluster(name), name, status: { conditions } };
  await cli.table.write([{ put: row }, { put: fleetRow(row) }]);
}

beforeEach(async () => {
  await register("a", { answers: "True" });
  await register("b", { zone: "spoke", answers: "False" });
  await register("c", { zone: "spoke", answers: "True" });
  await cli.table.update(zoneUpdate("spoke", ranAt));
});

test("`get zones` shows the network, the addresses and the clusters of each zone", async () => {
  const { code, out } = await cli.run("get zones");
  expect(code).toBe(0);
  expect(out.split("\n").map((line) => line.trim().split(/\s+/))).toEqual([
    ["NAME", "NETWORK", "ADDRESSES", "VERSION", "RAN", "CLUSTERS", "UNREACHABLE", "SOURCES"],
    ["home", "none", "-", "-", "-", "1", "0", "-"],
    ["fixed", "vpc", "203.0.113.7,203.0.113.8", "-", "-", "0", "0", "read"],
    ["spoke", "subnets", "-", starlingVersion, expect.stringMatching(/^9\ds$/), "2", "1", "-"],
    [""],
  ]);
});

test("`get zones` counts clusters of a zone that is down, about which no worker reports", async () => {
  const { desired, ...sync } = syncRow("c", "shop.web");
  const reason = "ZoneDown: zone spoke: no worker has run since 2026-11-23T07:00:00Z";
  const paused = { reason, at: "2026-11-23T08:00:00Z", zone: "spoke" };
  const row: SyncRow = { ...sync, desired: { ...desired, attempt: desired.attempt + 1 }, paused };
  await cli.table.write([{ put: row }]);
  const { items } = JSON.parse((await cli.run("get zones -o json")).out) as { items: Record<string, unknown>[] };
  expect(items.map(({ clusters }) => clusters)).toEqual([
    { total: 1, unreachable: 0 },
    { total: 0, unreachable: 0 },
    { total: 2, unreachable: 2 },
  ]);
});

test("`get zones` names zones that were removed while clusters are in them, with the number of these clusters", async () => {
  expect((await cli.run("get zones")).err).not.toContain("does not have");
  await register("d", { zone: "gone", answers: "False" });
  await register("e", { zone: "gone", answers: "False" });
  await register("f", { zone: "lost", answers: "False" });
  const { out, err } = await cli.run("get zones");
  expect(out).not.toMatch(/gone|lost/);
  expect(err.split("\n")).toContain(
    "3 clusters are in zones that the installation does not have: gone (2), lost (1); add these zones to the setting zones and deploy, or give the clusters another zone: `starling get clusters -o wide`",
  );
  expect((await cli.run("get zones spoke")).err).not.toContain("does not have");
});

test("`get zones -o json` marks the zone that reads Sources, and no other", async () => {
  const { items } = JSON.parse((await cli.run("get zones -o json")).out) as { items: Record<string, unknown>[] };
  expect(items.map(({ readsSources }) => readsSources)).toEqual([undefined, true, undefined]);
});

test("`describe source` says from which zone it is read", async () => {
  const file = cli.write(
    "source.yaml",
    "{apiVersion: starling.dev/v1alpha1, kind: Source, metadata: {name: shop, namespace: shop}, spec: {git: {url: https://git.corp.example/shop.git}}}",
  );
  expect(await cli.run(["apply", "-f", file])).toMatchObject({ code: 0 });
  expect((await cli.run("describe source/shop -n shop")).out).toMatch(
    /^Zone: +read from zone fixed \(setting resolveZone\)$/m,
  );
});

test("`get zone NAME -o json` prints one zone for programs", async () => {
  const { out } = await cli.run("get zone/spoke -o json");
  expect(JSON.parse(out).items).toEqual([
    {
      kind: "Zone",
      metadata: { name: "spoke" },
      network: { type: "subnets", addresses: [] },
      account: "444455556666",
      region: "eu-north-1",
      logGroup: "/starling/starling-zone-spoke",
      clusterNames: ["eu-*", "b"],
      workers: { ranAt: ranAt.toISOString(), version: starlingVersion },
      clusters: { total: 2, unreachable: 1 },
    },
  ]);
});

test("`get zones -o wide` shows the account, the region and the names of each zone", async () => {
  const { out } = await cli.run("get zones -o wide");
  const rows = out.split("\n").map((line) => line.trim().split(/\s+/).slice(8));
  expect(rows.slice(0, 4)).toEqual([
    ["ACCOUNT", "REGION", "NAMES"],
    ["111122223333", "eu-west-1", "*"],
    ["111122223333", "eu-west-1", "*"],
    ["444455556666", "eu-north-1", "eu-*,b"],
  ]);
});

test("`get zones` names a zone whose workers reach none of its clusters, with since when and the remedy", async () => {
  expect((await cli.run("get zones")).err).not.toContain("ZoneSilent");
  await cli.table.update(silenceUpdate("spoke", "2026-11-23T08:00:00Z"));
  expect((await cli.run("get zones")).err).toContain(
    "ZoneSilent: no cluster of zone spoke answers since 2026-11-23T08:00:00Z; find the broken link: `starling zone check spoke`\n",
  );
  const { items } = JSON.parse((await cli.run("get zone/spoke -o json")).out);
  expect(items[0].workers.silentSince).toBe("2026-11-23T08:00:00Z");
});

test("`logs` says where the workers of a zone in another account log, and says nothing of that for the audit log", async () => {
  const note =
    "the workers of zone spoke log in account 444455556666 in eu-north-1: `aws logs tail /starling/starling-zone-spoke --region eu-north-1`";
  const id = "push-20261123T061254Z-1f8a90c2";
  const { err } = await cli.run(`logs --id ${id}`);
  expect(err.split("\n")).toContain(note);
  expect(err).not.toContain("zone fixed");
  expect((await cli.run(`logs --id ${id} --audit`)).err).not.toContain("zone spoke");
});

test("a zone that does not exist, and flags of other lists, are refused", async () => {
  expect(await cli.run("get zones nowhere")).toMatchObject({
    code: 1,
    err: expect.stringContaining("there is no zone nowhere; the zones are home, fixed, spoke"),
  });
  expect((await cli.run("get zone fixd")).err).toContain("there is no zone fixd (did you mean fixed?); the zones are");
  expect(await cli.run("describe zone fixed")).toMatchObject({
    code: 2,
    err: expect.stringMatching(/"zone" is not a kind; .*\n {2}next: starling get zone$/m),
  });
  expect(await cli.run("get zones -l a=b")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--selector does not go with zones"),
  });
});
