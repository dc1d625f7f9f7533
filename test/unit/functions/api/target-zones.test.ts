/** The clusters of a zone that is down are one cause: in `rollout status`, and on the page of the owner. */

import { expect, test } from "vitest";
import { reasonsText, targetsText } from "#cli/format/target-lines.ts";
import { listTargets } from "#functions/api/read/list-targets.ts";
import { getRollout } from "#functions/api/read/read-rollouts.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { silenceUpdate } from "#shared/fleet/rows/zone-row.ts";
import { begin, names, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

/** h000 answers; h001 does not, for a reason of its own; a000 to a011 are in zone `spoke`. */
async function fleet(): Promise<PlannerWorld> {
  const made = await worldOf(["h000", "h001"], {
    maxConcurrent: "100%",
    maxUnreachable: "100%",
    progressDeadline: "10m",
  });
  made.zones = new Set(["spoke"]);
  for (const name of names(12, "a")) await made.addCluster(name, "all", { zone: "spoke" });
  await made.plan();
  await begin(made);
  await made.pulse("home");
  await made.finish("h000");
  await made.observe("h001", "Unreachable", { reason: "Unauthorized" });
  await made.plan();
  return made;
}

/** @param zones - those of the installation besides `home`, as its functions get them; null for none. */
async function targetsOf(made: PlannerWorld, zones: string | null = "spoke=subnets") {
  const way = await getRollout(made.table, { owner });
  const { table, blobs } = made;
  const ports = { table, blobs, zoneNetworks: parseZoneNetworks(zones ?? undefined) };
  const { items } = await listTargets(ports, { way, page: { limit: 500 } });
  return items;
}

/** The lines of `rollout status` about clusters, without the header. */
async function linesOf(made: PlannerWorld): Promise<readonly string[]> {
  const text = targetsText({ targets: await targetsOf(made), lines: "some", now: made.now });
  return text
    .split("\n")
    .slice(1, -1)
    .map((line) => line.trim().replaceAll(/ {2,}/g, "  "));
}

const remedy = 'its clusters catch up when it is repaired: `starling get zones spoke`, and "Zone down" in the runbook';

test("clusters of a zone whose workers do not run have one line, with their number, the zone, since when, and the remedy", async () => {
  const made = await fleet();
  await made.pulse("spoke");
  made.advanceClock(600);
  await made.plan();
  const down = `ZoneDown: zone spoke: no worker has run since 2026-11-21T08:00:00.000Z; ${remedy}`;
  expect(await linesOf(made)).toEqual([
    `12 of zone spoke  all  Unreachable  10m  ${down}`,
    "h001  all  Unreachable  10m  -  Unauthorized",
    "Succeeded, all (1): h000",
  ]);
  const targets = await targetsOf(made);
  const problems = targets.filter(({ state }) => state === "Unreachable");
  const many = reasonsText({ targets: problems }, { size: 14, command: "" });
  expect(many).toMatch(/ZoneDown +zone spoke: .* 12\n/);
  expect(many.match(/ZoneDown/g)).toHaveLength(1);
  // Its workers run again: each cluster has its own reason until it is asked.
  made.advanceClock(60);
  await made.pulse("spoke");
  expect((await targetsOf(made)).filter(({ zone }) => zone !== undefined)).toEqual([]);
});

test("clusters of a zone whose network reaches none of them have one line, whatever each worker reports", async () => {
  const made = await fleet();
  for (const name of names(12, "a")) {
    const problems = [
      { object: name, reason: "ETIMEDOUT", message: `https://${name}${name}.gr7.eu-west-1.eks.amazonaws.com` },
    ];
    await made.observe(name, "Unreachable", { problems: problems as never });
  }
  await made.plan();
  expect(await linesOf(made)).toHaveLength(14);
  await made.pulse("spoke");
  await made.table.update(silenceUpdate("spoke", "2026-11-21T08:00:00.000Z"));
  made.advanceClock(120);
  expect((await linesOf(made))[0]).toBe(
    `12 of zone spoke  all  Unreachable  2m  ZoneSilent: no cluster of zone spoke answers since 2026-11-21T08:00:00.000Z; ${remedy}`,
  );
  expect(await linesOf(made)).toHaveLength(3);
  await made.table.update(silenceUpdate("spoke", undefined));
  expect(await linesOf(made)).toHaveLength(14);
});

test.each([
  ["all zones were removed", null],
  ["the zone was removed", "other=vpc"],
])("clusters of a zone that was down when %s are told that the zone does not exist", async (_what, zones) => {
  const made = await fleet();
  await made.pulse("spoke");
  await made.table.update(silenceUpdate("spoke", "2026-11-21T08:00:00.000Z"));
  made.advanceClock(600);
  await made.plan();
  const removed = (await targetsOf(made, zones)).filter(({ cluster }) => cluster.startsWith("a"));
  expect(removed.map(({ zone }) => zone)).toEqual(Array.from({ length: 12 }, () => undefined));
  expect(new Set(removed.map(({ reason }) => reason))).toEqual(
    new Set([
      "ZoneNotFound: zone spoke was removed from the setting zones; add it again and deploy, or give its clusters another zone",
    ]),
  );
});

test("a cluster that moved out of a zone that is down says nothing about the zone where it is now", async () => {
  const made = await fleet();
  await made.pulse("spoke");
  made.advanceClock(600);
  await made.plan();
  await made.addCluster("a000", "all", { zone: "other" });
  await made.addCluster("a001", "all", {});
  const found = await targetsOf(made, "spoke=subnets,other=vpc");
  const zoneOf = (name: string) => found.find(({ cluster }) => cluster === name)?.zone?.name;
  expect(["a000", "a001", "a002"].map(zoneOf)).toEqual([undefined, undefined, "spoke"]);
});
