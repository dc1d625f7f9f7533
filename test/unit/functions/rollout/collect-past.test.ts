/** Rows of rollouts that have left the history: they are removed, and no row that is still needed is ever removed. */
import { describe, expect, test } from "vitest";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, newestRowSchema } from "#shared/fleet/rows/row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { Crash, DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { allSay, ana, copyOf, names, playOn, revise, rings } from "#test/support/planner-story.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

const rollouts = new Set(["RolloutState", "Rollout", "StageRun", "Target", "Slot", "CatchUp"]);
const count = (made: PlannerWorld) => made.table.all().filter(({ type }) => rollouts.has(type)).length;
const numbers = (made: PlannerWorld) => made.rollouts().map(({ number }) => number);

/**
 * Checks that every rollout and stage run that the rollout state names has its row, with all targets that a stage run
 * counts.
 */
function checkNeeded(made: PlannerWorld): void {
  const { stages, last, ledger } = made.rolloutState();
  const rollouts = new Set(numbers(made));
  const stageRuns = new Map(made.stageRuns().map((stageRun) => [stageRunKey(stageRun), stageRun]));
  const needed = new Set([
    last,
    ...stages.flatMap(({ current, updatingTo }) => [current ?? [], updatingTo?.rollout ?? []].flat()),
  ]);
  expect([...needed].filter((number) => number > 0 && !rollouts.has(number))).toEqual([]);
  expect(ledger.map(({ number }) => number).filter((number) => !rollouts.has(number))).toEqual([]);
  for (const ref of stages.flatMap(({ updatingTo, passed }) => [updatingTo ?? [], passed ?? []].flat())) {
    const stageRun = stageRuns.get(stageRunKey(ref));
    expect(stageRun).toMatchObject(ref);
    const { Succeeded = 0, Unchanged = 0, Failed = 0 } = stageRun?.counts ?? {};
    const targets = made.targets(ref.rollout).filter((target) => stageRunKey(target.stageRun) === stageRunKey(ref));
    expect(targets.length).toBeGreaterThanOrEqual(Succeeded + Unchanged + Failed);
  }
}

async function worldWith(clusters: Readonly<Record<string, string>>, group: Parameters<PlannerWorld["setGroup"]>[0]) {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 100 }), blobs: new MemoryBlobStore() });
  for (const [name, ring] of Object.entries(clusters)) await made.addCluster(name, ring);
  await made.setSource("aaa");
  await made.setGroup(group);
  await made.rollOut();
  return made;
}

/** A copy of the world, so that a test can take another course from here. */
/** Adds targets to the first rollout, as if it had gone to a large fleet. */
async function addTargets(made: PlannerWorld, many: number): Promise<void> {
  const [first] = made.targets(1);
  if (first === undefined) throw new Error("nothing was recorded");
  for (const cluster of names(many)) {
    const put: TargetRow = { ...first, ...keys.target(owner, first.stageRun, cluster), cluster };
    await made.table.write([{ put }]);
  }
}

async function push(made: PlannerWorld, many: number, from = 1): Promise<void> {
  for (let commit = from; commit < from + many; commit++) {
    await revise(made, `c${commit}`);
    for (let stage = 0; stage < made.rolloutState().stages.length; stage++) await allSay(made, "Ready");
    checkNeeded(made);
  }
}

describe("the rows of rollouts that follow each other", { timeout: 60_000 }, () => {
  test("a group has as many rows after thirty rollouts as after fifteen", async () => {
    const made = await worldWith({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: "100%" });
    await push(made, 14);
    const few = count(made);
    await push(made, 15, 15);
    expect(made.rolloutState()).toMatchObject({ last: 30, stages: [{ current: 30 }, { current: 30 }] });
    expect(count(made)).toBe(few);
    expect(numbers(made)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
  });

  test("the rollout that is a stage's current one, that a stage is updating to, or that a stage had before, keeps its row, however old it is", async () => {
    const made = await worldWith({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await revise(made, "long");
    await allSay(made, "Ready");
    await made.observe("r1", "Applying");
    await pushFirst(made, 14);
    expect(made.stages()).toEqual({ canary: "16", rest: "1 (2)" });
    expect(numbers(made)).toEqual([1, 2, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    await made.finish("r1");
    await playOn(made, 2);
    await push(made, 1, 15);
    expect(numbers(made)).toEqual([2, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
    expect(made.stages()).toEqual({ canary: "17", rest: "17" });
    expect(made.rolloutState().past).toBeUndefined();
  });

  test("a row that a newer version wrote is left alone", async () => {
    const made = await worldWith({ c1: "all" }, {});
    const [first] = made.targets(1);
    if (first === undefined) throw new Error("nothing was recorded");
    await made.table.write([{ put: { ...first, schema: newestRowSchema + 1, version: 2 }, when: { version: 1 } }]);
    await push(made, 12);
    expect(made.table.all().filter(({ schema }) => schema > newestRowSchema)).toHaveLength(1);
    expect(numbers(made)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(made.rolloutState().past).toBeUndefined();
  });

  /** Only the first stage progresses. */
  async function pushFirst(made: PlannerWorld, many: number): Promise<void> {
    for (let commit = 1; commit <= many; commit++) {
      await revise(made, `c${commit}`);
      await made.finish("c1");
      await made.plan();
      checkNeeded(made);
    }
  }
});

describe("a planner that dies while it removes old rows", { timeout: 60_000 }, () => {
  const keysOf = (made: PlannerWorld) =>
    made.table.all().flatMap((row) => (rollouts.has(row.type) ? [keyText(row)] : []));

  test("the next call leaves the same rows as a planner that did not die, wherever it died", async () => {
    const made = await worldWith({ c1: "all", c2: "all" }, { maxConcurrent: "100%" });
    await push(made, 9);
    await addTargets(made, 200);
    await made.setSource("last");
    const desired = await copyOf(made);
    await desired.plan();
    expect(numbers(desired)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(desired.targets(1)).toEqual([]);
    const found = await dieEverywhere(made, keysOf(desired), checkNeeded);
    // It died between pages, too.
    expect(new Set(found).size).toBeGreaterThanOrEqual(4);
  });

  test("the next call deletes a group as a planner does that did not die, wherever it died", async () => {
    const made = await worldWith({ c1: "all" }, { maxConcurrent: "100%" });
    await addTargets(made, 120);
    await push(made, 1);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    await made.finish("c1");
    const desired = await copyOf(made);
    await desired.plan();
    expect(desired.rows("SyncGroup")).toEqual([]);
    const found = await dieEverywhere(made, keysOf(desired), () => {});
    expect(new Set(found).size).toBeGreaterThanOrEqual(3);
  });

  /** @returns how many targets of the first rollout were left, each time that it died. */
  async function dieEverywhere(made: PlannerWorld, desired: readonly string[], check: (copy: PlannerWorld) => void) {
    const found: number[] = [];
    for (const when of ["before", "after"] as const) {
      for (let at = 1, hasDied = true; hasDied; at++) {
        const copy = await copyOf(made);
        const { table } = new DisturbedPorts(copy, { crash: { at, when } });
        hasDied = await copy.plan(table).then(() => false, isCrash);
        check(copy);
        found.push(copy.targets(1).length);
        await copy.plan();
        expect(keysOf(copy)).toEqual(desired);
        expect(copy.rolloutState().past).toBeUndefined();
      }
    }
    return found;
  }

  function isCrash(error: unknown): boolean {
    if (!(error instanceof Crash)) throw error;
    return true;
  }
});

describe("a group that is deleted", { timeout: 60_000 }, () => {
  test.each([
    ["delete", 4],
    ["orphan", 3],
  ] as const)("a deletion by %s keeps the numbering, and the last rollout for thirty days", async (cascade, last) => {
    const made = await worldWith({ c1: "all", c2: "all" }, { maxConcurrent: "100%" });
    await addTargets(made, 120);
    await push(made, 2);
    await made.operate({ deletion: { ...ana(made.now), cascade } });
    for (let round = 0; round < 6 && made.rows("SyncGroup").length > 0; round++) {
      await made.plan();
      for (const { cluster } of made.slots()) await made.finish(cluster);
    }
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.rolloutState().last).toBe(last);
    const left = made.table.all().filter(({ type }) => rollouts.has(type));
    const inThirtyDays = made.now.getTime() / 1000 + 30 * 86_400;
    expect(left.map(({ type, expiresAt }) => [type, expiresAt])).toEqual([
      ["Rollout", inThirtyDays],
      ["StageRun", inThirtyDays],
      ["RolloutState", undefined],
    ]);
    // Another group of the same name goes on with its numbers, and needs none of its rows.
    await made.setSource("ddd");
    await made.setGroup({ maxConcurrent: "100%" });
    const another = { ...(await made.group()), uid: "another", version: 2 };
    await made.table.write([{ put: another, when: { version: 1 } }]);
    await made.rollOut();
    await made.plan();
    expect(numbers(made)).toEqual([last + 1]);
    checkNeeded(made);
  });
});

describe("the rows that an earlier group of the same name left", { timeout: 60_000 }, () => {
  /** Replaces the group by another of its name, without a call of the planner in between. */
  async function replace(made: PlannerWorld, deletion?: "orphan"): Promise<void> {
    const { status: _status, ...row } = await made.group();
    const withDeletion = deletion && { operations: { deletion: { ...ana(made.now), number: 1, cascade: deletion } } };
    const another = { ...row, status: { conditions: [] }, uid: "another", version: row.version + 1, ...withDeletion };
    await made.table.write([{ put: another, when: { version: row.version } }]);
  }

  test("rows that the earlier group had not finished to remove are removed", async () => {
    const made = await worldWith({ c1: "all" }, { maxConcurrent: "100%" });
    await push(made, 9);
    await addTargets(made, 300);
    await made.setSource("last");
    for (let at = 1; made.rolloutState().past === undefined; at++) {
      const { table } = new DisturbedPorts(made, { crash: { at, when: "after" } });
      await made.plan(table).catch(() => {});
    }
    expect(made.targets(1).length).toBeGreaterThan(0);
    await replace(made);
    await made.rollOut();
    await made.plan();
    expect(made.targets(1)).toEqual([]);
    expect(numbers(made)).toEqual([made.rolloutState().last]);
  });

  test("rows of the earlier group are removed when the new group is deleted before anything was planned for it", async () => {
    const made = await worldWith({ c1: "all" }, { maxConcurrent: "100%" });
    await addTargets(made, 250);
    await replace(made, "orphan");
    await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.targets(1)).toEqual([]);
    expect(numbers(made)).toEqual([]);
  });
});
