/** A zone whose workers do not run: its clusters become unreachable, and never fail. */

import { describe, expect, test } from "vitest";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { zoneUpdate } from "#shared/fleet/rows/zone-row.ts";
import { ana, begin, counting, names, revise, worldOf } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const reason = "ZoneDown: zone spoke: no worker has run since 2026-11-21T08:00:00.000Z";

/** c1 is in `home`; s1 and s2 are in `spoke`, whose workers ran a moment ago. */
async function zonedWorld(rollout: Partial<RolloutStrategy>): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  made.zones = new Set(["spoke"]);
  await made.addCluster("c1", "all");
  for (const name of ["s1", "s2"]) await made.addCluster(name, "all", { zone: "spoke" });
  await made.setSource("aaa");
  await made.setGroup({ progressDeadline: "10m", ...rollout });
  await made.pulse("spoke");
  await begin(made);
  return made;
}

async function homeWorks(made: PlannerWorld): Promise<void> {
  await made.pulse("home");
  await made.finish("c1");
  await made.plan();
}

describe("the workers of a zone do not run", () => {
  test("its targets are unreachable after progressDeadline, with one reason, and the stage passes without them", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(599);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    made.advanceClock(1);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
    expect(made.targets().map((target) => target.reason)).toEqual(["", reason, reason]);
    expect(made.stageRun("all").phase).toBe("Passed");
    expect(made.slots()).toEqual([]);
    expect(await made.group()).toMatchObject({ status: { clusters: { ready: 1, unreachable: 2, failed: 0 } } });
    expect((await made.sync("s1"))?.paused).toMatchObject({ zone: "spoke", reason });
  });

  test("they count against maxUnreachable, and roll nothing back", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 1, onFailure: "rollback" });
    await homeWorks(made);
    await made.pulse("spoke");
    for (const name of ["s1", "s2"]) await made.finish(name);
    await made.plan();
    await revise(made, "bbb");
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "TooManyUnreachable", counts: { Failed: 0, Unreachable: 2 } });
    expect(made.rollouts()).toHaveLength(2);
    expect(made.rolloutState().rejected ?? []).toEqual([]);
  });

  test("an attempt that its worker has begun is unreachable too, when the next check is late", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    await made.observe("s1", "Applying", { nextAt: made.now.toISOString() });
    await made.plan();
    made.advanceClock(600);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
  });

  test("clusters that answer again get another turn, and the stage passes on their evidence", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 1 });
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    expect(made.stageRun("all").phase).toBe("TooManyUnreachable");
    await made.pulse("spoke");
    for (const name of ["s1", "s2"]) await made.observe(name, "Reachable");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    expect(await made.sync("s1")).not.toHaveProperty("paused");
    for (const name of ["s1", "s2"]) await made.finish(name);
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Passed");
  });
});

/** Rolls out to 100 clusters of `home`. @returns the planner's calls until all have it, and how often nothing went on. */
async function callsFor(dead: number): Promise<{ calls: number; waits: number; made: PlannerWorld }> {
  const made = await worldOf([], { progressDeadline: "10m" });
  made.zones = new Set(["spoke"]);
  for (const name of names(100, "h")) await made.addCluster(name, "all");
  for (const name of names(dead, "a")) await made.addCluster(name, "all", { zone: "spoke" });
  await made.setGroup({ maxConcurrent: 10, maxUnreachable: "100%", progressDeadline: "10m" });
  await begin(made);
  let [calls, waits] = [0, 0];
  while (Object.values(made.states()).filter((state) => state === "Succeeded").length < 100) {
    const own = made.slots().filter(({ cluster }) => cluster.startsWith("h"));
    await made.pulse("home");
    for (const { cluster } of own) await made.finish(cluster);
    if (own.length === 0) {
      waits++;
      made.advanceClock(600);
      await made.pulse("home");
    }
    calls++;
    await made.plan();
  }
  return { calls, waits, made };
}

test("a dead zone of 100 clusters takes from 100 clusters of another zone one deadline, and no further call", async () => {
  const alone = await callsFor(0);
  const beside = await callsFor(100);
  expect(alone.waits).toBe(0);
  expect(beside.waits).toBe(1);
  expect(beside.calls).toBeLessThanOrEqual(alone.calls + 2);
  await beside.made.plan();
  expect(beside.made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 100, Unreachable: 100 } });
  expect(beside.made.rolloutState().downZones).toMatchObject([{ zone: "spoke" }]);
  // In the next rollout, nobody waits for the zone.
  await revise(beside.made, "bbb");
  expect(beside.made.slots().filter(({ cluster }) => cluster.startsWith("a"))).toEqual([]);
  // A worker runs again: its clusters get the time of an attempt.
  await beside.made.pulse("spoke");
  await beside.made.observe("a000", "Reachable");
  await beside.made.plan();
  for (const { cluster } of beside.made.slots()) if (cluster.startsWith("h")) await beside.made.finish(cluster);
  await beside.made.plan();
  expect(beside.made.slots().map(({ cluster }) => cluster)).toContain("a000");
  expect(beside.made.rolloutState().downZones).toBeUndefined();
});

describe("the workers of a zone run", () => {
  test("a cluster whose worker is busy keeps its slot, until the zone is silent for as long as an attempt may take", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(500);
    await made.pulse("spoke");
    made.advanceClock(100);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    // The planner asks again by itself.
    expect(made.rolloutState().deadline).toBe("2026-11-21T08:18:20.000Z");
    made.advanceClock(500);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
  });

  test("a worker that stays with one cluster for its whole invocation says nothing meanwhile, and its zone is not down", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2, progressDeadline: "30s" });
    await homeWorks(made);
    for (const seconds of [30, 329]) {
      made.advanceClock(seconds);
      await made.plan();
    }
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    made.advanceClock(1);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
  });

  test("after an outage in which nobody called them, they have time to say that they run", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    for (const name of ["s1", "s2"]) await made.observe(name, "Applying", { nextAt: made.now.toISOString() });
    await made.plan();
    made.advanceClock(3600);
    for (const clusters of [["s1"], undefined]) await made.plan(undefined, clusters);
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    made.advanceClock(179);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    made.advanceClock(1);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
  });

  test("a planner that is always late gives them that time once an hour", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    for (const state of ["Assigned", "Unreachable"]) {
      made.advanceClock(1200);
      await made.plan();
      expect(made.states()).toEqual({ c1: "Succeeded", s1: state, s2: state });
    }
  });

  test("in an installation without zones, clusters wait for their worker", async () => {
    const made = await worldOf(["a"], { progressDeadline: "10m" });
    await begin(made);
    made.advanceClock(3600);
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned" });
  });
});

describe("a zone that no worker could say anything of yet", () => {
  /** c1 has waited for its worker for an hour, in an installation whose only zone is `home`. */
  async function longWaiting(): Promise<PlannerWorld> {
    const made = await worldOf(["c1"], { progressDeadline: "10m", maxUnreachable: 1 });
    await begin(made);
    for (let minutes = 0; minutes < 60; minutes += 5) {
      made.advanceClock(300);
      await made.plan();
    }
    expect(made.states()).toEqual({ c1: "Assigned" });
    made.sender.take();
    return made;
  }

  /** Calls the planner at this many seconds from now, and once a minute before. */
  async function passing(made: PlannerWorld, seconds: number): Promise<void> {
    for (let left = seconds; left > 0; left -= 60) {
      made.advanceClock(Math.min(left, 60));
      await made.plan();
    }
  }

  const wakings = (made: PlannerWorld) =>
    made.sender.take().flatMap((each) => (each.to === "apply" ? [`${each.cluster} in ${each.zone}`] : []));

  test("home is not down because the first zone was added: its workers get the time of an attempt, and are called once", async () => {
    const made = await longWaiting();
    made.zones = new Set(["spoke"]);
    await made.plan();
    expect(made.states()).toEqual({ c1: "Assigned" });
    expect(wakings(made)).toEqual(["c1 in home"]);
    await passing(made, 599);
    expect(made.states()).toEqual({ c1: "Assigned" });
    expect(wakings(made)).toEqual([]);
    await passing(made, 1);
    expect(made.states()).toEqual({ c1: "Unreachable" });
  });

  test("home is not down when its last worker ran before the zones were removed and added again", async () => {
    const made = await longWaiting();
    await made.table.update(zoneUpdate("home", new Date(made.now.getTime() - 86_400_000)));
    made.zones = new Set(["spoke"]);
    await passing(made, 600);
    expect(made.states()).toEqual({ c1: "Assigned" });
    await made.pulse("home");
    await passing(made, 599);
    expect(made.states()).toEqual({ c1: "Assigned" });
  });

  test.each(["never", "long ago"])(
    "a zone whose workers ran %s is not down because a cluster moves into it",
    async (ran) => {
      const made = await longWaiting();
      if (ran === "long ago") await made.pulse("spoke");
      made.zones = new Set(["spoke"]);
      await made.plan();
      await made.pulse("home");
      await passing(made, 500);
      wakings(made);
      await made.addCluster("c1", "all", { zone: "spoke" });
      await passing(made, 600);
      expect(made.states()).toEqual({ c1: "Assigned" });
      expect(wakings(made)).toEqual(["c1 in spoke"]);
      // The planner cannot know when the cluster moved: it counts from its first check of the silent worker.
      await passing(made, 600);
      expect(made.states()).toEqual({ c1: "Unreachable" });
    },
  );

  test("with a short progressDeadline it has six minutes for its first start", async () => {
    const made = await worldOf(["c1"], { progressDeadline: "30s", maxUnreachable: 1 });
    made.zones = new Set(["spoke"]);
    await made.addCluster("c1", "all", { zone: "spoke" });
    await begin(made);
    await passing(made, 359);
    expect(made.states()).toEqual({ c1: "Assigned" });
    await passing(made, 1);
    expect(made.states()).toEqual({ c1: "Unreachable" });
  });
});

describe("zones that are removed from the settings", () => {
  test("clusters of a zone that does not exist wait for the workers of home, which report them", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.zones = new Set(["other"]);
    for (const seconds of [300, 300, 300, 300]) {
      made.advanceClock(seconds);
      await made.pulse("home");
      await made.plan();
    }
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Assigned", s2: "Assigned" });
    for (const name of ["s1", "s2"]) await made.observe(name, "Unreachable", { reason: "ZoneNotFound" });
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", s1: "Unreachable", s2: "Unreachable" });
  });

  test.each([
    ["all zones", new Set<string>()],
    ["the zone", new Set(["other"])],
  ])("after the removal of %s, nobody takes the zone for down", async (_what, zones) => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    expect(made.rolloutState().downZones).toHaveLength(1);
    made.zones = zones;
    await made.pulse("home");
    await revise(made, "bbb");
    expect(made.states()).toEqual({ c1: "Assigned", s1: "Assigned", s2: "Assigned" });
    expect(made.rolloutState()).not.toHaveProperty("downZones");
  });

  test("a zone that was found down a day ago gets the time of an attempt again", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    for (const [hours, commit, state] of [
      [23, "bbb", "Unreachable"],
      [2, "ccc", "Assigned"],
    ] as const) {
      made.advanceClock(hours * 3600);
      await made.pulse("home");
      await revise(made, commit);
      expect(made.states()).toEqual({ c1: "Assigned", s1: state, s2: state });
      await homeWorks(made);
    }
  });
});

test("a zone that the version before found down, without the time, gets the time of an attempt again", async () => {
  const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
  await homeWorks(made);
  made.advanceClock(600);
  await made.plan();
  const { pk, sk, downZones = [] } = made.rolloutState();
  const before = downZones.map(({ since: _unknown, ...rest }) => rest);
  expect(before).toEqual([{ zone: "spoke", workedAt: "2026-11-21T08:00:00.000Z" }]);
  await made.table.write([{ update: { pk, sk }, set: { downZones: before } }]);
  await made.pulse("home");
  await revise(made, "bbb");
  expect(made.states()).toEqual({ c1: "Assigned", s1: "Assigned", s2: "Assigned" });
  expect(made.rolloutState()).not.toHaveProperty("downZones");
});

describe("a zone that no longer serves the name of a cluster", () => {
  test("the cluster waits for the workers of home, which report it, also while the zone is down", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    expect(made.rolloutState().downZones).toMatchObject([{ zone: "spoke" }]);
    made.servedNames = new Map([["spoke", ["s2"]]]);
    await made.pulse("home");
    await revise(made, "bbb");
    expect(made.states()).toEqual({ c1: "Assigned", s1: "Assigned", s2: "Unreachable" });
    expect(made.slots().find(({ cluster }) => cluster === "s1")?.zone).toMatchObject({ name: "home" });
    for (const seconds of [300, 300, 300]) {
      made.advanceClock(seconds);
      await made.pulse("home");
      await made.plan();
    }
    expect(made.states()).toMatchObject({ s1: "Assigned" });
    await made.observe("s1", "Unreachable", { reason: "NameNotServed" });
    await made.plan();
    expect(made.targets().find(({ cluster }) => cluster === "s1")?.reason).toMatch(/^NameNotServed/);
  });
});

describe("people ask for a check of clusters in a zone that is down", () => {
  test("the answer comes after the time of an attempt and names the zone, also where nothing was assigned", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    for (const name of ["s1", "s2"]) await made.finish(name);
    await made.plan();
    expect((await made.group()).status.state).toBe("Complete");
    made.advanceClock(3600);
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    await made.pulse("home");
    await made.observe("c1", "Ready");
    for (const seconds of [1, 599, 1]) {
      expect((await made.group()).status).not.toHaveProperty("reconciled");
      made.advanceClock(seconds);
      await made.plan();
    }
    const { status } = await made.group();
    expect(status).toMatchObject({
      state: "Degraded",
      reconciled: 1,
      clusters: { ready: 1, unreachable: 2, failed: 0 },
    });
    expect(status.conditions[0]?.message).toContain(`zone spoke: no worker has run since 2026-11-21T08:00:00.000Z`);
    expect(made.slots()).toEqual([]);
  });

  test("a reconcile that ends with clusters of a zone that is down reads their entries together with their Syncs", async () => {
    const requestsWith = async (inSpoke: number) => {
      const made = await worldOf(["c1"], { maxConcurrent: "100%", maxUnreachable: "100%", progressDeadline: "10m" });
      made.zones = new Set(["spoke"]);
      for (const name of names(inSpoke, "s")) await made.addCluster(name, "all", { zone: "spoke" });
      for (const zone of ["home", "spoke"]) await made.pulse(zone);
      await begin(made);
      for (const name of ["c1", ...names(inSpoke, "s")]) await made.finish(name);
      await made.plan();
      await made.operate({ reconcile: ana(made.now) });
      await made.plan();
      await made.pulse("home");
      await made.observe("c1", "Ready");
      made.advanceClock(601);
      const reads = counting(made.table);
      await made.plan(reads.table);
      expect((await made.group()).status.clusters).toMatchObject({ unreachable: inSpoke });
      return reads.requests();
    };
    expect(await requestsWith(20)).toBe(await requestsWith(2));
  });

  test("the status of a group says why clusters of a zone that is down do not answer", async () => {
    const made = await zonedWorld({ maxConcurrent: "100%", maxUnreachable: 2 });
    await homeWorks(made);
    made.advanceClock(600);
    await made.plan();
    await made.plan();
    const { status } = await made.group();
    expect(status.conditions[0]?.message).toContain(
      `s1, s2 do not answer (s1 since 2026-11-21T08:10:00.000Z: ${reason})`,
    );
  });
});

describe("a zone goes down while its clusters bake", () => {
  const stages = (bake: string) => [
    { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } }, after: [{ bake }] },
    { name: "rest" },
  ];

  /** Canaries in `home` (c1, if asked for) and in `spoke` (s1, s2), which have just begun to bake. */
  async function baking(more: { readonly home: boolean; readonly maxUnreachable: number | string }) {
    const made = new PlannerWorld();
    made.zones = new Set(["spoke"]);
    if (more.home) await made.addCluster("c1", "canary");
    for (const name of ["s1", "s2"]) await made.addCluster(name, "canary", { zone: "spoke" });
    await made.addCluster("r1", "rest");
    await made.setSource("aaa");
    const { maxUnreachable } = more;
    const rollout = { stages: stages("30m"), maxConcurrent: "100%", onFailure: "rollback" } as const;
    await made.setGroup({ ...rollout, maxUnreachable, progressDeadline: "10m" });
    for (const zone of ["home", "spoke"]) await made.pulse(zone);
    await begin(made);
    for (const name of more.home ? ["c1", "s1", "s2"] : ["s1", "s2"]) await made.finish(name);
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Baking");
    return made;
  }

  /** The bake ends, the worker of c1 answers, and nobody in `spoke` does. */
  async function end(made: PlannerWorld): Promise<void> {
    made.advanceClock(1800);
    await made.plan();
    await made.pulse("home");
    if ((await made.sync("c1")) !== undefined) await made.observe("c1", "Ready");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Baking");
    made.advanceClock(600);
    await made.plan();
  }

  test.each([
    [1, "TooManyUnreachable", "- (1)"],
    [2, "Passed", "1"],
  ])(
    "they count as unreachable at its end, and never as failed: of %i allowed, %s",
    async (maxUnreachable, phase, stage) => {
      const made = await baking({ home: true, maxUnreachable });
      await end(made);
      const counts = { Succeeded: 1, Unreachable: 2, Failed: 0 };
      expect(made.stageRun("canary")).toMatchObject({ phase, counts, away: ["s1", "s2"] });
      expect(made.stages().canary).toBe(stage);
      expect(made.rolloutState().rejected ?? []).toEqual([]);
    },
  );

  test("a stage whose clusters are all in the zone verifies nothing, so that the next stage does not begin", async () => {
    const made = await baking({ home: false, maxUnreachable: "100%" });
    await end(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", counts: { Failed: 0, Unreachable: 2 } });
    expect(await made.sync("r1")).toBeUndefined();
  });
});
