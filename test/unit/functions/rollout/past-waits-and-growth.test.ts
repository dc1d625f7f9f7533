/** Faults that happened once in the planner: a cluster that waited for ever, and a row that grew with the fleet. */
import { describe, expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import type { RenderingRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import {
  allSay,
  ana,
  begin,
  names,
  ownPaths,
  playOn,
  revise,
  rings,
  web,
  worldOf,
} from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const syncs = (made: PlannerWorld) => made.rows<SyncRow>("SyncOnCluster");

describe("a cluster that joins gets the current rollout of its stage", () => {
  test.each<[string, (made: PlannerWorld) => Promise<void>]>([
    ["while a stage run is in progress there", async (made) => made.observe("r1", "Applying")],
    ["while a stage run is halted there", async (made) => allSay(made, "Failed")],
    ["while all its clusters are unreachable", async (made) => allSay(made, "Unreachable")],
  ])("a cluster that joins gets the current rollout of its stage %s", async (_name, act) => {
    const made = await worldOf(
      { c1: "canary", r1: "rest", r2: "rest" },
      { ...rings, maxConcurrent: 4, maxUnreachable: 0 },
    );
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await begin(made);
    await act(made);
    await made.addCluster("new", "rest");
    await made.plan();
    expect((await made.sync("new"))?.desired).toMatchObject({ action: "apply", revision: "main@sha1:aaa", rollout: 1 });
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  });

  test("a cluster that joins before any rollout has passed becomes a target of the stage run", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    await made.addCluster("new", "all");
    await playOn(made, 6);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", size: 3, counts: { Succeeded: 3 } });
  });
});

describe("a cluster that does nothing with its slot", () => {
  test.each<[string, (made: PlannerWorld) => Promise<void>]>([
    ["whose worker never begins", async () => {}],
    ["whose worker may not read the rendering", (made) => made.observe("b", "Retrying", { reason: "BlobDenied" })],
  ])(
    "a newer rollout goes to the other clusters and to a cluster %s, which gets it in its slot",
    async (_name, act) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "60s" });
      await begin(made);
      await act(made);
      await made.finish("a");
      await made.plan();
      for (const commit of ["bbb", "ccc"]) {
        made.advanceClock(25);
        await revise(made, commit);
        expect(made.stages()).toEqual({ all: "- (1)" });
      }
      made.advanceClock(10);
      await begin(made);
      expect(syncs(made).map(({ desired }) => desired.revision)).toEqual(["main@sha1:ccc", "main@sha1:ccc"]);
      await playOn(made);
      expect(made.stages()).toEqual({ all: "2" });
    },
  );
});

test("the other clusters get a newer rollout although two clusters do nothing with their slots", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, progressDeadline: "60s" });
  await begin(made);
  await made.finish("c");
  await made.plan();
  made.advanceClock(60);
  await revise(made, "bbb");
  expect(made.stages()).toEqual({ all: "- (2)" });
});

test("a cluster with a later start time is given its deadline from that time on", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "60s", jitter: "10m" });
  await begin(made);
  const startAt = (await made.sync("a"))?.desired.startAt ?? "";
  await made.finish("b");
  const begins = (new Date(startAt).getTime() - made.now.getTime()) / 1000;
  made.advanceClock(begins + 59);
  expect(begins).toBeGreaterThan(1);
  await revise(made, "bbb");
  expect(made.stages()).toEqual({ all: "- (1)" });
  made.advanceClock(1);
  await begin(made);
  expect(made.stages()).toEqual({ all: "- (2)" });
});

describe("a rendering that never ends", () => {
  test("a rendering fails its target after a limit from when a renderer began, and the other targets go on", async () => {
    const made = await worldOf(names(12), { maxConcurrent: 3, maxFailures: 1 }, ownPaths);
    const ofOthers = (row: RenderingRow) => row.path !== "clusters/c000";
    for (let round = 0; round < 12; round++) {
      await made.plan();
      await made.renderAll(undefined, ofOthers);
      await allSay(made, "Ready");
    }
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 11, Rendering: 1 });
    const [stuck] = made.rows<RenderingRow>("Rendering").filter((row) => !ofOthers(row));
    if (stuck === undefined) throw new Error("nothing was asked for");
    const begun: RenderingRow = { ...stuck, begunAt: made.now.toISOString(), version: stuck.version + 1 };
    await made.table.write([{ put: begun }]);
    made.advanceClock(599);
    await made.plan();
    expect(made.stageRun("all").counts.Rendering).toBe(1);
    made.advanceClock(1);
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 11, Failed: 1, Rendering: 0 } });
    expect(made.targets().find(({ cluster }) => cluster === "c000")?.reason).toMatch(
      /^RenderFailed: not rendered since/,
    );
  });

  test("a superseded stage run has no target that waits for the rendering", async () => {
    const made = await worldOf(names(4), { maxConcurrent: 1 }, ownPaths);
    await made.plan();
    await made.renderAll(undefined, (row) => row.path === "clusters/c000");
    await made.plan();
    await allSay(made, "Failed");
    expect(made.stageRun("all").phase).toBe("Halted");
    await made.setSource("bbb");
    await made.plan();
    const [old] = made.stageRuns();
    expect(old).toMatchObject({
      phase: "Superseded",
      counts: { Rendering: 0, Waiting: 0, Failed: 1, Superseded: 3 },
      holds: [],
    });
  });
});

describe("rows and steps that must not grow with the fleet", () => {
  test("a reconcile reaches every cluster, in steps of limited size", async () => {
    const made = await worldOf(names(130), { maxConcurrent: "100%" });
    await made.rollOut();
    let most = 0;
    const write = made.table.write.bind(made.table);
    made.table.write = (writes) => {
      most = Math.max(most, writes.length);
      return write(writes);
    };
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    expect(syncs(made).every(({ reconcile }) => reconcile === 1)).toBe(true);
    expect(most).toBeLessThanOrEqual(100);
    expect(made.rolloutState().jobs).toEqual([]);
  });

  test("no row holds the names of clusters that join, leave, or are left behind", async () => {
    const sizes: number[] = [];
    for (const count of [20, 200]) {
      const made = await worldOf(names(count), { maxConcurrent: "100%", maxUnreachable: "100%" }, web, {
        selector: { matchLabels: { ring: "all" } },
      });
      await begin(made);
      await made.finish("c000");
      await made.plan();
      await allSay(made, "Unreachable");
      expect(made.stageRun("all").phase).toBe("Passed");
      for (const name of names(count).slice(1)) await made.addCluster(name, "none");
      const planned: number[] = [];
      const write = made.table.write.bind(made.table);
      made.table.write = (writes) => {
        for (const one of writes)
          if ("put" in one && one.put.pk.startsWith("ROLL#")) planned.push(JSON.stringify(one.put).length);
        return write(writes);
      };
      await made.plan();
      expect(syncs(made).filter(({ desired }) => desired.action === "orphan")).toHaveLength(count - 1);
      sizes.push(Math.max(...planned, ...made.stageRuns().map((stageRun) => JSON.stringify(stageRun).length)));
    }
    const [small = 0, large = 0] = sizes;
    expect(large).toBeLessThan(small * 1.1);
  });

  test("a cluster that has to lose more Syncs than fit into a transaction loses all of them", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 1 });
    await made.rollOut();
    // Templates were removed one after the other while the cluster was unreachable; a group has at most 20 at once.
    const before = await made.sync("a");
    if (before === undefined) throw new Error("nothing was assigned");
    const templates = names(130, "old");
    for (const name of templates) {
      const row = {
        ...before,
        sk: `SYNC#shop#web.${name}`,
        name: `web.${name}`,
        stateSk: `Ready#a#web.${name}`,
        version: 1,
      };
      await made.table.write([{ put: row }]);
    }
    const rolloutState = made.rolloutState();
    const remembers: RolloutStateRow = {
      ...rolloutState,
      templates: ["app", ...templates],
      version: rolloutState.version + 1,
    };
    await made.table.write([{ put: remembers }]);
    await made.setSource("bbb");
    await playOn(made, 8);
    expect(syncs(made).map(({ name }) => name)).toEqual(["web.app"]);
    expect(made.stages()).toEqual({ all: "2" });
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 1 });
  });

  test("a stage run that has changed its phase thirty times is reported once, with its newest phase", async () => {
    const made = await worldOf(names(3), { maxConcurrent: 1, maxFailures: 0 });
    await begin(made);
    await allSay(made, "Failed");
    for (let turn = 0; turn < 30; turn++) {
      await made.setGroup({ maxConcurrent: 1, maxFailures: turn % 2 });
      await made.plan();
    }
    made.sender.take();
    await made.setGroup({ maxConcurrent: 1, maxFailures: 0 });
    await made.plan();
    const reports = made.sender.take().filter((message) => message.to === "report");
    expect(reports.length).toBeLessThanOrEqual(1);
    expect(made.stageRun("all").transitions.at(-1)?.phase).toBe(made.stageRun("all").phase);
    expect(later(made.now, 0)).toBe(made.stageRun("all").transitions.at(-1)?.at);
  });
});
