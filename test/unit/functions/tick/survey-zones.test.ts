/** Zones that are down are found in the rows of their clusters, and leave the alarm of the fleet alone. */

import { describe, expect, test } from "vitest";
import { everyMinute } from "#functions/tick/every-minute.ts";
import { zonesSurvey } from "#functions/tick/survey-zones.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Metrics, Table } from "#shared/ports.ts";
import { lagging } from "#test/support/planner-model/disturbed-ports.ts";
import { begin, counting, names, register, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

/** A fleet with clusters h000, h001 ... in `home` and s000, s001 ... in `spoke`, whose workers have just run. */
async function fleet(inSpoke: number): Promise<PlannerWorld> {
  const made = await worldOf(names(3, "h"), { maxConcurrent: "100%", maxUnreachable: "100%", progressDeadline: "10m" });
  made.zones = new Set(["spoke", "empty"]);
  for (const name of names(inSpoke, "s")) await made.addCluster(name, "all", { zone: "spoke" });
  for (const name of [...names(3, "h"), ...names(inSpoke, "s")]) await register(made, name);
  await made.table.write([{ put: { ...keys.owner(owner), type: "Directory", schema: rowSchema, version: 1 } as Row }]);
  await begin(made);
  for (const zone of ["home", "spoke", "empty"]) await made.pulse(zone);
  return made;
}

/** The cluster's worker has noted this about the cluster. */
async function note(made: PlannerWorld, cluster: string, reason: string): Promise<void> {
  const row = await made.table.get(keys.cluster(cluster));
  if (row === undefined) throw new Error(`${cluster} is not registered`);
  const status = reason === "Answers" ? "True" : "False";
  const condition = { type: "Reachable", status, reason, message: "", since: made.now.toISOString() } as const;
  const next = { ...row, status: { ...row.status, conditions: [condition] }, version: row.version + 1 };
  await made.table.write([{ put: next }]);
}

/** A survey of a sandbox: the metrics about zones, and the reads of the table. */
function surveysOf(made: PlannerWorld) {
  const reads = counting(made.table);
  let lines: string[] = [];
  const add = (name: string, value: number, dimensions: Readonly<Record<string, string>> = {}) =>
    lines.push([name, ...Object.values(dimensions), value].join(" "));
  const metrics: Metrics = { count: add, seconds: add };
  const ports = { table: reads.table, clock: { now: () => made.now }, metrics, zones: made.zones };
  const survey = zonesSurvey(ports);
  return async () => {
    lines = [];
    const before = reads.requests();
    const troubled = await survey();
    const requests = reads.requests() - before;
    await takeSurvey({ ...ports, table: made.table, sender: made.sender, log: silentLog }, troubled);
    const metricsNow = lines.filter((line) => /Zone|unreachable/.test(line)).sort();
    return { troubled: [...troubled].sort(), metrics: metricsNow, requests };
  };
}

const silenceOf = async (made: PlannerWorld) => (await made.table.get(keys.zone("spoke")))?.silentSince;

function minuteOf(made: PlannerWorld, table: Table = made.table) {
  const counted: string[] = [];
  const metrics: Metrics = {
    count: (...of) => counted.push([of[0], ...Object.values(of[2] ?? {})].join(" ")),
    seconds() {},
  };
  const clock = { now: () => made.now };
  const alarms = { read: () => Promise.reject(new Error("no alarm is to be read")) } as never;
  const ports = { table, sender: made.sender, log: silentLog, clock, metrics, zones: made.zones, alarms };
  return { counted, minute: everyMinute(ports) };
}

test("a table that refuses the rows of zones fails the survey of zones, and the fleet is surveyed all the same", async () => {
  const made = await fleet(1);
  const getMany: Table["getMany"] = (of, reading) => {
    const isOfZone = of.some(({ pk }) => pk.startsWith("ZONE#"));
    return isOfZone ? Promise.reject(new Error("throttled")) : made.table.getMany(of, reading);
  };
  const { counted, minute } = minuteOf(made, { ...lagging(made.table, made.table), getMany });
  await expect(minute()).rejects.toThrow("throttled");
  expect(counted).toContain("Targets changing");
  // The next survey is due in five minutes, as after any other.
  counted.length = 0;
  await minute();
  expect(counted).toEqual([]);
});

test("a row of a cluster that is no Cluster inside hides neither its own zone nor another one that is silent", async () => {
  const made = await fleet(2);
  made.zones = new Set(["spoke", "stolen"]);
  await made.addCluster("x000", "all", { zone: "stolen" });
  await register(made, "x000");
  for (const [cluster, status] of Object.entries({ s000: {}, x000: { conditions: [null] } })) {
    const row = await made.table.get(keys.cluster(cluster));
    await made.table.write([{ put: { ...row, status } as Row }]);
  }
  await note(made, "s001", "Unreachable");
  const { counted, minute } = minuteOf(made);
  await minute();
  expect(counted).toContain("SilentZones spoke");
  expect(await silenceOf(made)).toBe(made.now.toISOString());
});

describe("the workers of a zone run", () => {
  test("the zone is silent when none of its clusters answers, since the last one was lost, until one answers again", async () => {
    const made = await fleet(2);
    const survey = surveysOf(made);
    await note(made, "s000", "Unreachable");
    await note(made, "s001", "Answers");
    expect(await survey()).toMatchObject({ troubled: [], metrics: [] });
    made.advanceClock(60);
    await note(made, "s001", "Unreachable");
    const lost = made.now.toISOString();
    made.advanceClock(60);
    expect(await survey()).toMatchObject({ troubled: ["spoke"], metrics: ["SilentZones spoke 1"] });
    expect(await silenceOf(made)).toBe(lost);
    await made.pulse("spoke");
    expect(await silenceOf(made)).toBe(lost);
    await note(made, "s000", "Answers");
    expect(await survey()).toMatchObject({ troubled: [], metrics: [] });
    expect(await silenceOf(made)).toBeUndefined();
  });

  test.each(["Unauthorized", "IdentityMismatch"])(
    "the zone is not silent when a cluster answers with %s",
    async (reason) => {
      const made = await fleet(2);
      await note(made, "s000", "Unreachable");
      await note(made, "s001", reason);
      expect((await surveysOf(made)()).metrics).toEqual([]);
    },
  );

  test("the zone is silent since the last cluster was lost, whatever its name, also beside one that was never asked", async () => {
    const made = await fleet(3);
    await note(made, "s001", "Unreachable");
    const first = made.now.toISOString();
    expect(await surveysOf(made)()).toMatchObject({ metrics: ["SilentZones spoke 1"] });
    expect(await silenceOf(made)).toBe(first);
    made.advanceClock(60);
    await note(made, "s000", "Unreachable");
    await surveysOf(made)();
    expect(await silenceOf(made)).toBe(made.now.toISOString());
  });

  test("the zone is not silent before a worker has asked one of its clusters", async () => {
    const made = await fleet(1);
    expect((await surveysOf(made)()).metrics).toEqual([]);
  });

  test.each(["StsUnavailable", "EksUnavailable", "SecretsUnavailable", "BlobStoreBusy"])(
    "the zone is silent when its workers do not even reach the service of AWS that they ask first (%s)",
    async (reason) => {
      const made = await fleet(2);
      for (const name of names(2, "s")) await note(made, name, reason);
      expect(await surveysOf(made)()).toMatchObject({ troubled: ["spoke"], metrics: ["SilentZones spoke 1"] });
    },
  );

  test.each(["NameNotServed", "SecretNotFound", "RoleDenied", "AddressRefused", "DriftCorrectionFailed"])(
    "a cluster with the reason %s says nothing about the network of its zone: neither that it is down, nor that it is not",
    async (reason) => {
      const made = await fleet(2);
      for (const name of names(2, "s")) await note(made, name, reason);
      const survey = surveysOf(made);
      expect((await survey()).metrics).toEqual([]);
      await note(made, "s000", "Unreachable");
      expect((await survey()).metrics).toEqual(["SilentZones spoke 1"]);
    },
  );

  test("a cluster without Syncs, which nobody asks, says nothing either, whatever its row says", async () => {
    const made = await fleet(1);
    for (const name of ["s8", "s9"]) {
      await made.addCluster(name, "none", { zone: "spoke" });
      await register(made, name);
    }
    const survey = surveysOf(made);
    await note(made, "s8", "Unreachable");
    expect((await survey()).metrics).toEqual([]);
    await note(made, "s9", "Answers");
    await note(made, "s000", "Unreachable");
    expect((await survey()).metrics).toEqual(["SilentZones spoke 1"]);
  });

  test("clusters without Syncs cost no query each while no cluster is lost, and hide none that answers when one is", async () => {
    const made = await fleet(1);
    const requestsBeside = async (from: number, to: number) => {
      for (let index = from; index < to; index++) {
        const name = `a${String(index).padStart(2, "0")}`;
        await made.addCluster(name, "none", { zone: "spoke" });
        await register(made, name);
        await note(made, name, "Answers");
      }
      return (await surveysOf(made)()).requests;
    };
    const few = await requestsBeside(0, 15);
    const more = await requestsBeside(15, 60);
    // The directory's pages have two entries, each after an empty page. A query for each cluster would be 90 more requests.
    expect(more - few).toBeLessThan(60);
    await made.addCluster("s001", "all", { zone: "spoke" });
    await register(made, "s001");
    await made.table.write([{ put: syncRowOf("s001") }]);
    await note(made, "s000", "Unreachable");
    expect((await surveysOf(made)()).metrics).toEqual(["SilentZones spoke 1"]);
    await note(made, "s001", "Answers");
    expect((await surveysOf(made)()).metrics).toEqual([]);
  });

  test("a cluster that answered and lost its Syncs, or moved to another zone, speaks for its zone no more", async () => {
    const made = await fleet(3);
    const survey = surveysOf(made);
    for (const name of ["s000", "s001"]) await note(made, name, "Answers");
    await note(made, "s002", "Unreachable");
    expect((await survey()).metrics).toEqual([]);
    for (const row of made.rows<SyncRow>("SyncOnCluster"))
      if (row.cluster === "s000") await made.table.write([{ delete: row }]);
    expect((await survey()).metrics).toEqual([]);
    await made.addCluster("s001", "all");
    const moved = await made.table.get(keys.cluster("s001"));
    if (moved === undefined) throw new Error("s001 is not registered");
    const { access: _access, ...spec } = moved.spec;
    await made.table.write([{ put: { ...moved, spec, version: moved.version + 1 } as ClusterRow }]);
    expect((await survey()).metrics).toEqual(["SilentZones spoke 1"]);
  });

  test("the fleet's directory is read again only after somebody has written to it", async () => {
    const made = await fleet(250);
    made.zones = new Set(["empty", "spoke"]);
    for (const name of names(250, "s")) await note(made, name, "Unreachable");
    await note(made, "s000", "Answers");
    const survey = surveysOf(made);
    const directory = Math.ceil(253 / 50);
    const first = await survey();
    // The rows of zones, the witness, its Syncs, and the versions of the directory.
    const { requests } = await survey();
    expect(requests).toBeLessThan(first.requests - directory);
    await made.addCluster("e000", "none", { zone: "empty" });
    await register(made, "e000");
    await note(made, "e000", "Unreachable");
    expect((await survey()).requests).toBeGreaterThan(requests + directory);
    expect((await survey()).requests).toBeLessThan(requests + directory);
  });

  test("a zone costs three requests in each survey, however many clusters it has, once a cluster is known that answers", async () => {
    const made = await fleet(250);
    for (const name of names(250, "s")) await note(made, name, "Unreachable");
    await note(made, "s249", "Answers");
    made.zones = new Set(["spoke"]);
    const survey = surveysOf(made);
    expect((await survey()).requests).toBeGreaterThan(4);
    // The zone, the witness, and its Syncs, whose first page is empty here.
    expect((await survey()).requests).toBe(4);
    await note(made, "s249", "Unreachable");
    await note(made, "s003", "Answers");
    expect(await survey()).toMatchObject({ metrics: [] });
    expect((await survey()).requests).toBe(4);
  });
});

describe("unreachable clusters of a zone that is down are told apart", () => {
  test("when its workers reach none of them", async () => {
    const made = await fleet(4);
    for (const name of names(4, "s")) {
      await made.observe(name, "Unreachable");
      await note(made, name, "Unreachable");
    }
    await made.observe("h000", "Unreachable");
    for (const name of ["h001", "h002"]) await made.finish(name);
    await made.plan();
    expect((await surveysOf(made)()).metrics).toEqual([
      "SilentZones spoke 1",
      "Targets unreachable 5",
      "UnreachableInZones 4",
    ]);
  });

  test("when its workers do not run", async () => {
    const made = await fleet(4);
    for (const name of names(3, "h")) await made.finish(name);
    made.advanceClock(600);
    await made.plan();
    const survey = surveysOf(made);
    const down = ["Targets unreachable 4", "UnreachableInZones 4"];
    expect((await survey()).metrics).toEqual(down);
    // Its workers run again, and each cluster counts for itself.
    await made.table.update({ update: keys.zone("spoke"), set: { workedAt: later(made.now, -599) } });
    expect((await survey()).metrics).toEqual(["Targets unreachable 4"]);
  });
});

test("an installation without zones reads nothing for them", async () => {
  const made = await fleet(1);
  made.zones = new Set();
  expect(await surveysOf(made)()).toEqual({ troubled: [], metrics: [], requests: 0 });
});
