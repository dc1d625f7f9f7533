import { beforeEach, describe, expect, test } from "vitest";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { ana, begin, counting, lease, names, ownPaths, playOn, revise, web } from "#test/support/planner-story.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

function freezeAt(made: PlannerWorld, more: Partial<Freeze> = {}): Freeze {
  return { name: "inc-4711", by: "ana", at: made.now.toISOString(), reason: "INC-4711", ...more };
}

function worldOfPages(): PlannerWorld {
  return new PlannerWorld({ table: new MemoryTable({ pageItems: 50 }), blobs: new MemoryBlobStore() });
}

/** One slot is free, and every cluster is frozen. */
async function frozenWorld(frozen: number): Promise<PlannerWorld> {
  const world = worldOfPages();
  for (const name of names(frozen, "p")) await world.addCluster(name, "all", { labels: { env: "prod" } });
  await world.setSource("aaa");
  await world.setGroup({ maxConcurrent: 1 });
  await world.setFreezes({ freezes: [freezeAt(world, { clusters: prod })] });
  await begin(world);
  return world;
}

const prod = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };

describe("a stage run under a freeze", () => {
  let made: PlannerWorld;

  beforeEach(async () => {
    made = new PlannerWorld();
    await made.addCluster("a1", "all", { labels: { env: "dev" } });
    await made.addCluster("p1", "all", { labels: { env: "prod" } });
    await made.addCluster("p2", "all", { labels: { env: "prod" } });
    await made.setSource("aaa");
    await made.setGroup({ maxConcurrent: 3, progressDeadline: "60s" });
    await made.plan();
    await made.renderAll();
  });

  const lift = (freeze: Freeze) =>
    made.setFreezes({ lifted: [{ ...freeze, lifted: { by: "bo", at: made.now.toISOString() } }] });

  test("a freeze of every cluster assigns nothing, is named in the status, and the stage run goes on after the thaw", async () => {
    await made.setFreezes({ freezes: [freezeAt(made)] });
    await made.plan();
    made.advanceClock(600);
    await made.plan();
    expect(await made.sync("a1")).toBeUndefined();
    expect(made.stageRun("all").phase).toBe("Updating");
    const { status } = await made.group();
    expect(status).toMatchObject({ state: "Frozen" });
    expect(status.conditions[0]?.message).toContain("frozen by ana (INC-4711); starling thaw inc-4711");
    await made.setFreezes({});
    await made.rollOut();
    expect(made.stageRun("all").phase).toBe("Passed");
  });

  test("a freeze of some clusters lets the others start, and the planner is due when the freeze ends", async () => {
    const until = later(made.now, 20);
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod, until })] });
    await made.plan();
    expect(made.states()).toEqual({ a1: "Assigned" });
    expect(made.stageRun("all").counts).toMatchObject({ Waiting: 2, Assigned: 1 });
    await made.observe("a1", "Ready");
    await made.plan();
    expect(dueAtOf(made.rolloutState().dueKey ?? "")).toBe(until);
    made.advanceClock(21);
    await made.plan();
    expect(made.states()).toEqual({ a1: "Succeeded", p1: "Assigned", p2: "Assigned" });
  });

  test("the deadline of an attempt in progress does not run during a freeze", async () => {
    await made.plan();
    for (const name of ["a1", "p1", "p2"]) await made.observe(name, "Applying");
    made.advanceClock(30);
    const freeze = freezeAt(made);
    await made.setFreezes({ freezes: [freeze] });
    made.advanceClock(120);
    await made.plan();
    expect(made.states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
    await lift(freeze);
    made.advanceClock(59);
    await made.plan();
    expect(made.states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
    made.advanceClock(2);
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", reason: "TooManyFailures" });
  });

  test("the deadline of an attempt does not run during a freeze that began and ended between two checks", async () => {
    await made.plan();
    for (const name of ["a1", "p1", "p2"]) await made.observe(name, "Applying");
    made.advanceClock(10);
    const freeze = freezeAt(made);
    made.advanceClock(45);
    await lift(freeze);
    made.advanceClock(30);
    await made.plan();
    expect(made.states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
  });

  test("a frozen cluster loses the only slot, to the first cluster of a newer rollout", async () => {
    await made.setGroup({ maxConcurrent: 1, progressDeadline: "60s", maxUnreachable: 0 });
    await made.rollOut();
    await revise(made, "bbb");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a1"]);
    await made.observe("a1", "Ready");
    await made.plan();
    await made.observe("p1", "Applying");
    const freeze = freezeAt(made, { clusters: prod });
    await made.setFreezes({ freezes: [freeze] });
    made.advanceClock(600);
    await revise(made, "ccc");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a1"]);
    await lift(freeze);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a1"]);
    await playOn(made, 4);
    expect((await made.sync("p1"))?.desired).toMatchObject({ revision: "main@sha1:ccc", attempt: 3 });
  });

  test("a freeze of many clusters holds up no other cluster", async () => {
    for (let index = 2; index < 10; index++) await made.addCluster(`a${index}`, "all", { labels: { env: "prod" } });
    for (const name of ["z1", "z2"]) await made.addCluster(name, "all", { labels: { env: "dev" } });
    await made.setGroup({ maxConcurrent: 1 });
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod })] });
    await playOn(made, 4);
    expect(made.stageRun("all").counts).toMatchObject({ Waiting: 10, Succeeded: 3 });
  });

  test.each([
    ["report of a worker", ["p010"]],
    ["check", undefined],
  ])("frozen clusters are not read again at each %s", async (_what, named) => {
    async function rowsRead(frozen: number): Promise<number> {
      const world = await frozenWorld(frozen);
      const counted = counting(world.table);
      await world.plan(counted.table, named);
      return counted.read();
    }
    expect(await rowsRead(40)).toBe(await rowsRead(20));
  });

  test.each([
    ["its freeze ends", (world: PlannerWorld) => world.setFreezes({})],
    ["its labels change", (world: PlannerWorld) => world.addCluster("p039", "all", { labels: { env: "dev" } })],
  ])("a cluster is released when %s, after a check that reads only labels", async (_what, change) => {
    const world = await frozenWorld(40);
    await change(world);
    const counted = counting(world.table);
    await world.plan(counted.table);
    expect(world.slots()).toHaveLength(1);
    expect(counted.requests()).toBeLessThan(25);
  });

  test.each(["pipeline", "finish"] as const)(
    "a freeze of some clusters keeps no newer rollout from the others (%s)",
    async (supersede) => {
      await made.setGroup({ maxConcurrent: 3, supersede });
      const freeze = freezeAt(made, { clusters: prod });
      await made.setFreezes({ freezes: [freeze] });
      await made.plan();
      await made.setSource("bbb");
      await begin(made);
      expect((await made.sync("a1"))?.desired.revision).toBe("main@sha1:aaa");
      await made.finish("a1");
      await begin(made);
      await begin(made);
      expect((await made.sync("a1"))?.desired.revision).toBe("main@sha1:bbb");
      await lift(freeze);
      await made.rollOut();
      expect((await made.sync("p1"))?.desired.revision).toBe("main@sha1:bbb");
      expect((await made.sync("p1"))?.desired.attempt).toBe(1);
    },
  );

  test("a freeze of a cluster with a slot keeps no newer rollout from the others", async () => {
    await made.plan();
    await made.observe("p1", "Applying");
    const freeze = freezeAt(made, { clusters: prod });
    await made.setFreezes({ freezes: [freeze] });
    await made.finish("a1");
    await made.finish("p2");
    made.advanceClock(61);
    await revise(made, "bbb");
    await begin(made);
    const revision = async (cluster: string) => (await made.sync(cluster))?.desired.revision;
    expect([await revision("a1"), await revision("p1")]).toEqual(["main@sha1:bbb", "main@sha1:aaa"]);
    await revise(made, "ccc");
    await made.finish("a1");
    await revise(made, "ccc");
    expect([await revision("a1"), await revision("p1")]).toEqual(["main@sha1:ccc", "main@sha1:aaa"]);
    await lift(freeze);
    await made.rollOut();
    expect(await revision("p1")).toBe("main@sha1:ccc");
  });

  test.each<[string, () => Promise<void>]>([
    ["selected", () => made.setGroup({ maxConcurrent: 3 }, web, { selector: { matchLabels: { env: "dev" } } })],
    ["registered", async () => Promise.all(["p1", "p2"].map((name) => made.removeCluster(name))).then(() => {})],
  ])("a stage run does not wait for frozen clusters that are no longer %s", async (_what, act) => {
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod })] });
    await made.plan();
    await made.finish("a1");
    await made.plan();
    await act();
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Skipped: 2 } });
  });

  test("a cluster under two freezes stays frozen when one of them ends", async () => {
    const p2 = { text: "name=p2", selector: { matchLabels: { name: "p2" } } };
    await made.addCluster("p2", "all", { labels: { env: "prod", name: "p2" } });
    const two = freezeAt(made, { name: "two", clusters: p2 });
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod, until: later(made.now, 60) }), two] });
    await made.plan();
    expect(made.stageRun("all").holds).toEqual([
      { cause: "freeze", name: "inc-4711", clusters: [1] },
      { cause: "freeze", name: "two", clusters: [2] },
    ]);
    await made.setFreezes({ freezes: [two] });
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({
      holds: [{ cause: "freeze", name: "two", clusters: [2] }],
      counts: { Waiting: 1, Assigned: 2 },
    });
    await lift(two);
    await playOn(made, 3);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 3 } });
  });

  test("a thaw removes the freeze from the stage run, and starts every cluster whose row can be read", async () => {
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod })] });
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ holds: [{ cause: "freeze", name: "inc-4711", clusters: [1, 2] }] });
    await made.table.write([{ update: keys.fleet("p2"), set: { schema: newestRowSchema + 1 } }]);
    await made.setFreezes({});
    await made.plan();
    expect(made.stageRun("all")).not.toHaveProperty("frozenAs");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a1", "p1"]);
  });

  test("the rollout state counts joiners that a freeze holds apart from joiners that wait for something else", async () => {
    await made.setGroup({ maxConcurrent: 3 }, ownPaths);
    await made.rollOut();
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod })] });
    for (const name of ["p3", "p4"]) await made.addCluster(name, "all", { labels: { env: "prod" } });
    await begin(made);
    expect(made.rolloutState().catchUpsHeld).toMatchObject({
      holds: [{ cause: "freeze", name: "inc-4711", clusters: 2 }],
    });
    await made.addCluster("a2", "all", { labels: { env: "dev" } });
    await made.plan();
    expect(made.rolloutState().catchUpsHeld).toMatchObject({
      holds: [
        { cause: "freeze", name: "inc-4711", clusters: 2 },
        { cause: "rendering", clusters: 1 },
      ],
    });
    await made.renderAll();
    await made.plan();
    expect(made.rolloutState().catchUpsHeld).toMatchObject({
      holds: [{ cause: "freeze", name: "inc-4711", clusters: 2 }],
    });
    expect((await made.sync("a2"))?.desired.action).toBe("apply");
  });

  test("a freeze holds joiners that it covers, and no others", async () => {
    await made.rollOut();
    await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod })] });
    await made.addCluster("a2", "all", { labels: { env: "dev" } });
    await made.addCluster("p3", "all", { labels: { env: "prod" } });
    await begin(made);
    expect((await made.sync("a2"))?.desired.action).toBe("apply");
    expect(await made.sync("p3")).toBeUndefined();
    await made.setFreezes({});
    await made.plan();
    expect((await made.sync("p3"))?.desired.action).toBe("apply");
  });

  test.each([
    ["report of a worker", ["a1"]],
    ["check", undefined],
  ])("frozen joiners are not read again at each %s, and other joiners get slots", async (_what, named) => {
    async function rowsRead(frozen: number): Promise<number> {
      const world = worldOfPages();
      await world.addCluster("a1", "all", { labels: { env: "dev" } });
      await world.setSource("aaa");
      await world.setGroup({ maxConcurrent: 3 });
      await world.rollOut();
      await world.setFreezes({ freezes: [freezeAt(world, { clusters: prod })] });
      for (const name of names(frozen, "p")) await world.addCluster(name, "all", { labels: { env: "prod" } });
      await begin(world);
      const counted = counting(world.table);
      await world.plan(counted.table, named);
      await world.addCluster("z1", "all", { labels: { env: "dev" } });
      await begin(world);
      expect(world.slots().map(({ cluster }) => cluster)).toEqual(["z1"]);
      await world.setFreezes({});
      await begin(world);
      expect(world.slots().map(({ cluster }) => cluster)).toEqual(["p000", "z1"]);
      return counted.read();
    }
    expect(await rowsRead(40)).toBe(await rowsRead(20));
  });

  describe("a freeze of a cluster that has a slot", () => {
    const freezeProd = async () => {
      const freeze = freezeAt(made, { clusters: prod });
      await made.setFreezes({ freezes: [freeze] });
      return freeze;
    };
    const holders = () => made.slots().map(({ cluster }) => cluster);

    /** `p1` has the only slot when the freeze begins, and `z1`, which is next, waits. */
    async function heldUp() {
      await made.addCluster("z1", "all", { labels: { env: "dev" } });
      await made.setGroup({ maxConcurrent: 1, progressDeadline: "60s" });
      await begin(made);
      await made.finish("a1");
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      return freezeProd();
    }

    test("a frozen cluster keeps its slot for its deadline's length, and then the next cluster gets it", async () => {
      const freeze = await heldUp();
      made.advanceClock(59);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      made.advanceClock(1);
      await made.plan();
      expect(holders()).toEqual(["z1"]);
      expect(made.stageRun("all").counts).toMatchObject({ Waiting: 2, Assigned: 1, Failed: 0 });
      expect((await made.sync("p1"))?.paused).toMatchObject({ freeze: "inc-4711" });
      await made.finish("z1");
      await lift(freeze);
      await playOn(made, 3);
      expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 4 } });
      expect((await made.sync("p1"))?.paused).toBeUndefined();
    });

    test("a frozen cluster keeps its slot for that length from the beginning of the freeze", async () => {
      await made.setFreezes({});
      await heldUp();
      await made.setFreezes({});
      made.advanceClock(50);
      await freezeProd();
      made.advanceClock(59);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      made.advanceClock(1);
      await made.plan();
      expect(holders()).toEqual(["z1"]);
    });

    test("a frozen cluster keeps its slot when only a newer version can read its Sync", async () => {
      await heldUp();
      const key = keys.sync("p1", owner.namespace, "web.app");
      await made.table.write([{ update: key, set: { schema: newestRowSchema + 1 } }]);
      made.advanceClock(61);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
    });

    test("a frozen cluster keeps its slot while its worker may still write", async () => {
      await heldUp();
      await made.observe("p1", "Applying");
      await lease(made, "p1", { fence: 4, seconds: 90 });
      made.advanceClock(61);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      made.advanceClock(30);
      await made.plan();
      expect(holders()).toEqual(["z1"]);
    });

    test("a freeze of all clusters gives the slot to no other cluster", async () => {
      await heldUp();
      await made.setFreezes({ freezes: [freezeAt(made, { clusters: prod }), freezeAt(made, { name: "all" })] });
      made.advanceClock(600);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      expect((await made.sync("p1"))?.paused).toBeUndefined();
    });

    test("a frozen cluster keeps its slot while the group is suspended", async () => {
      await heldUp();
      await made.operate({ suspended: ana(made.now) });
      made.advanceClock(600);
      await made.plan();
      expect(holders()).toEqual(["p1"]);
      expect((await made.sync("p1"))?.paused).toBeUndefined();
    });

    test("a frozen cluster counts as waiting, not as failed, and a reconcile is answered without it", async () => {
      await heldUp();
      made.advanceClock(61);
      await playOn(made, 2);
      await made.operate({ reconcile: ana(made.now) });
      await made.plan();
      made.advanceClock(61);
      await made.plan();
      const { status } = await made.group();
      expect(status.clusters).toEqual({ selected: 4, ready: 2, changing: 0, failed: 0, unreachable: 0, waiting: 2 });
      expect((await made.sync("p1"))?.stateSk).toMatch(/^Changing#/);
    });

    test("a frozen joiner catches up after the thaw, and holds up no other joiner", async () => {
      await made.rollOut();
      await made.setGroup({ maxConcurrent: 1, progressDeadline: "60s" });
      await made.addCluster("p3", "all", { labels: { env: "prod" } });
      await begin(made);
      expect(holders()).toEqual(["p3"]);
      const freeze = await freezeProd();
      await made.addCluster("z1", "all", { labels: { env: "dev" } });
      made.advanceClock(61);
      await made.plan();
      expect(holders()).toEqual(["z1"]);
      await made.finish("z1");
      await made.plan();
      expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 0 });
      expect(made.rolloutState().catchUpsHeld).toMatchObject({
        holds: [{ cause: "freeze", name: "inc-4711", clusters: 1 }],
      });
      await lift(freeze);
      await playOn(made, 2);
      expect((await made.sync("p3"))?.observed?.phase).toBe("Ready");
      expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
    });

    test("a frozen cluster stays paused after the thaw when its stage run has halted meanwhile", async () => {
      const freeze = await heldUp();
      made.advanceClock(61);
      await made.plan();
      await made.finish("z1", "Failed");
      await made.plan();
      expect(made.stageRun("all").phase).toBe("Halted");
      await lift(freeze);
      await made.plan();
      expect(holders()).toEqual([]);
      expect(await made.sync("p1")).toMatchObject({ desired: { attempt: 1 }, paused: { freeze: "inc-4711" } });
      await revise(made, "bbb");
      await playOn(made, 4);
      expect((await made.sync("p1"))?.desired.revision).toBe("main@sha1:bbb");
    });

    test("a freeze in the middle of an attempt does not mark the cluster as preexisting: a later failure of it counts", async () => {
      await made.rollOut();
      await made.setGroup({ maxConcurrent: 1, progressDeadline: "60s" });
      await made.addCluster("p3", "all", { labels: { env: "prod" } });
      await begin(made);
      await made.observe("p3", "Applying");
      const freeze = await freezeProd();
      made.advanceClock(61);
      await made.plan();
      await lift(freeze);
      await begin(made);
      expect(holders()).toEqual(["p3"]);
      expect((await made.sync("p3"))?.desired).toMatchObject({ attempt: 2 });
      expect((await made.sync("p3"))?.desired.preexisting).toBeUndefined();
    });
  });

  test("the planner assigns nothing when the freezes cannot be read", async () => {
    await made.table.write([{ put: { ...keys.freezeState, type: "Freezes", schema: rowSchema, version: 1 } }]);
    await expect(made.plan()).rejects.toThrow("the freezes cannot be read");
    expect(await made.sync("a1")).toBeUndefined();
  });
});
