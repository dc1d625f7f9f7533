import { describe, expect, test } from "vitest";
import { renderInput } from "#functions/render/render-input.ts";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { digestOf } from "#shared/base/digest.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { Crash, DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { allSay, begin, counting, names, ownPaths, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";

describe("the slots of a group", () => {
  test("a target whose rendering never comes is passed over", async () => {
    const made = await worldOf(names(40), { maxConcurrent: 3 }, ownPaths);
    for (let round = 0; round < 20; round++) {
      await made.plan();
      await made.renderAll(undefined, (row) => row.path !== "clusters/c000");
      await made.plan();
      await allSay(made, "Ready");
    }
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 39, Rendering: 1 });
  });

  test("targets whose renderings are missing are passed over for targets whose renderings are done", async () => {
    const made = await worldOf(names(20), { maxConcurrent: 5, maxFailures: 20 }, ownPaths);
    await made.plan();
    const slow = new Set(names(10).map((name) => `clusters/${name}`));
    for (let round = 0; round < 3; round++) {
      await made.renderAll(undefined, (row) => !slow.has(row.path));
      await made.plan();
      await allSay(made, "Ready");
    }
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 10, Rendering: 10 });
  });

  test("many targets whose renderings hang are passed over, and few renderings are asked for ahead", async () => {
    const made = await worldOf(names(60), { maxConcurrent: 1, maxFailures: 60 }, ownPaths);
    const hanging = new Set(names(40).map((name) => `clusters/${name}`));
    await made.plan();
    expect(made.rows("Rendering")).toHaveLength(7);
    for (let round = 0; round < 30; round++) {
      await made.renderAll(undefined, (row) => !hanging.has(row.path));
      await made.plan();
      await allSay(made, "Ready");
    }
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 20, Rendering: 40 });
  });

  test("joiners whose renderings hang are passed over, and a worker's report does not make the planner read them", async () => {
    const reads = async (joining: number) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, ownPaths);
      await made.rollOut();
      for (const name of names(joining)) await made.addCluster(name, "all");
      for (let check = 0; check < 12; check++) await made.plan();
      expect(made.rolloutState().catchUpsHeld).toMatchObject({ holds: [{ cause: "rendering", clusters: joining }] });
      const counted = counting(made.table);
      await made.plan(counted.table, ["a"]);
      await made.renderAll(undefined, ({ path }) => path === "clusters/c003");
      // This is the call of a renderer's message.
      await made.plan(made.table, []);
      expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c003"]);
      return counted.read();
    };
    expect(await reads(24)).toBe(await reads(12));
  });

  test("the slots of a small group go to all its stages and to joiners, however fast commits come", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, rings);
    await made.rollOut();
    await made.addCluster("z", "rest");
    for (let commit = 0; commit < 24; commit++) {
      await revise(made, `commit${commit}`);
      await allSay(made, "Ready");
    }
    expect(made.rolloutState().stages.map(({ current = 0 }) => current > 3)).toEqual([true, true]);
    expect((await made.sync("z"))?.observed?.phase).toBe("Ready");
  });

  test.each([
    ["each of them gets it once, and then again", "", "zeczeczec"],
    ["a stage that waits for its renderings is passed over", "e", "zczczczcz"],
  ])("a single slot goes round between stages and joiners: %s", async (_what, hanging, order) => {
    const ring = (name: string) => names(6, name.slice(0, 1)).map((cluster) => [cluster, name]);
    const fleet = Object.fromEntries(["canary", "early", "rest"].flatMap(ring));
    const early = { name: "early", clusters: { selector: { matchLabels: { ring: "early" } } } };
    const group = { stages: [...rings.stages.slice(0, 1), early, { name: "rest" }], maxConcurrent: 18 };
    const made = await worldOf(fleet, group, ownPaths);
    await made.rollOut();
    await revise(made, "bbb");
    for (const { cluster } of made.slots()) await made.finish(cluster);
    await made.setGroup({ ...group, maxConcurrent: 1 }, ownPaths);
    for (const name of names(6, "z")) await made.addCluster(name, "rest");
    await made.setSource("ccc");
    const given: string[] = [];
    for (let round = 0; given.length < 9 && round < 30; round++) {
      await made.plan();
      await made.renderAll(undefined, ({ path }) => hanging === "" || !path.startsWith(`clusters/${hanging}`));
      await made.plan();
      for (const { cluster } of made.slots()) {
        given.push(cluster.slice(0, 1));
        await made.finish(cluster);
      }
    }
    expect(given.join("")).toBe(order);
  });

  test("joiners also get slots while one stage after the other has targets that wait", async () => {
    const fleet = Object.fromEntries(names(24).map((name, index) => [name, index < 10 ? "canary" : "rest"]));
    const made = await worldOf(fleet, { ...rings, maxConcurrent: "100%" });
    await made.rollOut();
    await made.setGroup(rings);
    await revise(made, "bbb");
    for (let wave = 0; wave < 5; wave++) await allSay(made, "Ready");
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    for (const name of names(3, "z")) await made.addCluster(name, "rest");
    await made.plan();
    for (let wave = 0; wave < 6; wave++) await allSay(made, "Ready");
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
  });

  test("a lower maxConcurrent gives no slot to a cluster before enough slots are free", async () => {
    const made = await worldOf(["a", "b", "c", "d"], { maxConcurrent: 3 });
    await begin(made);
    await made.setGroup({ maxConcurrent: 1 });
    await made.finish("a");
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b", "c"]);
    await made.finish("b");
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c"]);
    await made.finish("c");
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["d"]);
  });

  test("a stage with a maxConcurrent of its own uses no more slots than that", async () => {
    const stages = [{ ...rings.stages[0], name: "canary", maxConcurrent: 1 }, { name: "rest" }];
    const made = await worldOf({ c1: "canary", c2: "canary", c3: "canary" }, { stages, maxConcurrent: 3 });
    await begin(made);
    expect(made.slots()).toHaveLength(1);
    await made.finish("c1");
    await made.plan();
    expect(made.slots()).toHaveLength(1);
  });

  test("jitter gives each target a start time of its own, and its worker is woken then", async () => {
    const made = await worldOf(names(20), { maxConcurrent: "100%", jitter: "15m" });
    await begin(made);
    const syncs = made.rows<SyncRow>("SyncOnCluster");
    expect(syncs).toHaveLength(20);
    expect(new Set(syncs.map(({ desired }) => desired.startAt)).size).toBeGreaterThan(10);
    for (const { desired } of syncs) expect(desired.startAt && desired.startAt <= later(made.now, 900)).toBe(true);
    const delays = made.sender.take().flatMap((message) => (message.to === "apply" ? [message.delaySeconds ?? 0] : []));
    // A queue keeps a message back for so long at most.
    expect(delays.every((seconds) => seconds > 0 && seconds <= 900)).toBe(true);
    expect(delays).toHaveLength(20);
  });

  test("catch-ups ask for no more renderings than the next slots could use", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 2 }, ownPaths);
    await made.rollOut();
    for (const name of names(30, "n")) await made.addCluster(name, "all");
    await made.plan();
    expect(made.rows<RenderingRow>("Rendering").length).toBeLessThan(10);
    for (let round = 0; round < 30; round++) {
      await made.renderAll();
      await made.plan();
      await allSay(made, "Ready");
    }
    expect(made.rows<SyncRow>("SyncOnCluster")).toHaveLength(31);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("no further catch-up gets a slot after two have failed, and stage runs go on", async () => {
    const made = await worldOf(names(4), { maxConcurrent: 2, maxFailures: 0 });
    await made.rollOut();
    for (const name of names(4, "n")) await made.addCluster(name, "all");
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["n000"]);
    await allSay(made, "Failed");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["n001"]);
    await allSay(made, "Failed");
    expect(made.slots()).toEqual([]);
    expect(made.rolloutState()).toMatchObject({ catchUps: { waiting: 2, failed: 2 }, stages: [{ failedCatchUps: 2 }] });
    await made.setSource("bbb");
    await made.rollOut();
    expect(made.stages()).toEqual({ all: "2" });
    expect((await made.sync("n002"))?.observed?.phase).toBe("Ready");
  });
});

test("catch-ups of a stage with too many failed catch-ups are not read again at each check", async () => {
  async function rowsRead(count: number): Promise<number> {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    for (const name of ["a0", "a1"]) {
      await made.addCluster(name, "rest");
      await begin(made);
      await allSay(made, "Failed");
    }
    for (const name of names(count)) await made.addCluster(name, "rest");
    await begin(made);
    expect(made.slots()).toEqual([]);
    const counted = counting(made.table);
    await made.plan(counted.table);
    await made.setGroup({ ...rings, maxConcurrent: 2, maxFailures: 2 });
    await begin(made);
    expect(made.slots().length).toBeGreaterThan(0);
    return counted.read();
  }
  expect(await rowsRead(40)).toBe(await rowsRead(20));
});

test("a rendering's row names the group to notify, so that a lost message does no harm", async () => {
  const made = await worldOf(["a"], {});
  await made.plan();
  const [row] = made.rows<RenderingRow>("Rendering");
  if (row === undefined) throw new Error("no rendering was asked for");
  const request = { to: "render", input: row.input } as const;
  expect(made.sender.take()).toContainEqual(expect.objectContaining({ ...request, notify: owner }));
  made.advanceClock(31);
  const { table, sender, blobs } = made;
  const ports = { table, sender, clock: { now: () => made.now }, log: silentLog, metrics: silentMetrics };
  await claimDue(ports);
  // The tick knows only the row's key; the row names the owner to notify.
  expect(made.sender.take()).toContainEqual(request);
  const built = { digest: digestOf("built"), objects: 1, bytes: Buffer.from("built") };
  await renderInput(request, { ...ports, blobs, ids: randomIds, turns: 1, builder: { build: async () => built } });
  expect(made.sender.take()).toEqual([expect.objectContaining({ to: "rollout", owner })]);
});

describe.each(["before", "after"] as const)("a planner that is killed %s any of its calls to a port", (when) => {
  /** The part of the outcome that does not depend on when the planner was killed. */
  const outcome = (made: PlannerWorld) => ({
    stageRuns: made
      .stageRuns()
      .map(({ rollout, stage, phase, counts, size }) => ({ rollout, stage, phase, counts, size })),
    slots: made.slots().map(({ cluster, order, attempts }) => ({ cluster, order, attempts })),
    syncs: made
      .rows<SyncRow>("SyncOnCluster")
      .map(({ cluster, desired: { token: _token, ...desired } }) => ({ cluster, desired })),
  });

  test("the next call reaches the same outcome as a planner that was not killed", { timeout: 60_000 }, async () => {
    const [fleet, strategy] = [names(30), { maxConcurrent: "100%" as const }];
    const quiet = await worldOf(fleet, strategy, web);
    await begin(quiet);
    let killed = true;
    for (let at = 1; killed; at++) {
      const made = await worldOf(fleet, strategy, web);
      killed = await planUntil(made, { at, when });
      await made.plan();
      await made.renderAll();
      await planUntil(made, { at, when });
      await made.plan();
      expect(outcome(made), `killed at call ${at}`).toEqual(outcome(quiet));
    }
  });

  /** @returns whether the planner was killed before it had done. */
  async function planUntil(
    made: PlannerWorld,
    crash: { readonly at: number; readonly when: "before" | "after" },
  ): Promise<boolean> {
    const { table, sender } = new DisturbedPorts(made, { crash });
    const [clock, until] = [{ now: () => made.now }, new Date(made.now.getTime() + 60_000)];
    try {
      const ports = { table, sender, clock, blobs: made.blobs, ids: randomIds, log: silentLog, installation: "test" };
      await planOwner(owner, { until }, ports);
      return false;
    } catch (error) {
      if (error instanceof Crash) return true;
      throw error;
    }
  }
});

test("a call that has no time left asks for another call, and writes nothing", async () => {
  const made = await worldOf(["a"], {});
  const clock = { now: () => made.now };
  const { table, sender, blobs } = made;
  const ports = { table, sender, clock, blobs, ids: randomIds, log: silentLog, installation: "test" };
  await planOwner(owner, { until: made.now }, ports);
  expect(made.sender.take()).toEqual([{ to: "rollout", owner }]);
  expect(made.rows("RolloutState")).toEqual([]);
});

test("a call whose time ends while it searches for a target that can start asks for another call", async () => {
  const made = await worldOf(names(40), { maxConcurrent: 3 }, ownPaths);
  await made.plan();
  made.sender.take();
  const { table } = made;
  await made.plan({
    ...counting(table).table,
    getMany: (keys, reading) => {
      made.advanceClock(20);
      return table.getMany(keys, reading);
    },
  });
  expect(made.sender.take()).toEqual([{ to: "rollout", owner, clusters: [] }]);
});

test("a cluster that moves to a stage that is behind keeps its newer revision when that stage passes an older rollout", async () => {
  const stages = ["canary", "early"].map((ring) => ({ name: ring, clusters: { selector: { matchLabels: { ring } } } }));
  const made = await worldOf(
    { a1: "canary", a2: "canary", e1: "early", r1: "rest" },
    { stages: [...stages, { name: "rest" }], maxConcurrent: 4 },
  );
  await made.rollOut();
  for (const commit of ["bbb", "ccc"]) {
    await revise(made, commit);
    for (const cluster of ["a1", "a2"]) await made.finish(cluster);
    await begin(made);
  }
  expect(made.stages()).toEqual({ canary: "3", early: "1 (2)", rest: "1" });
  await made.addCluster("a2", "rest");
  await made.plan();
  await made.finish("e1");
  await begin(made);
  await made.finish("r1");
  await begin(made);
  expect(made.rolloutState().stages.at(-1)?.current).toBe(2);
  expect((await made.sync("a2"))?.desired).toMatchObject({ revision: "main@sha1:ccc", attempt: 3 });
});
