import { describe, expect, test } from "vitest";
import type { FreezesRow } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import {
  allSay,
  ana,
  begin,
  counting,
  names,
  ownPaths,
  playOn,
  revise,
  rings,
  web,
  worldOf,
} from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const stageRuns = (made: PlannerWorld) =>
  made.stageRuns().map(({ rollout, stage, phase }) => `${rollout} ${stage} ${phase}`);

describe("a rollout that goes from stage to stage", () => {
  test("a rollout follows another one stage behind, and does not replace it", async () => {
    const fleet = { c1: "canary", r1: "rest", r2: "rest" };
    const made = await worldOf(fleet, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.plan();
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    await made.finish("c1");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (2)" });
    await allSay(made, "Ready");
    await made.rollOut();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(stageRuns(made).slice(2)).toEqual(["2 canary Passed", "2 rest Passed", "3 canary Passed", "3 rest Passed"]);
  });

  test("a stage run records when it begins, and with how many clusters", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, rings);
    await made.rollOut();
    const begun = { at: "2026-11-21T08:00:00.000Z", phase: "Updating", reason: "Updating" };
    expect(made.stageRuns().map(({ transitions }) => transitions[0])).toEqual([
      { ...begun, message: "stage canary begins: 1 cluster to check" },
      { ...begun, message: "stage rest begins: 2 clusters to check" },
    ]);
  });

  test("a rollout with `supersede: finish` waits until the one before has passed every stage", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3, supersede: "finish" });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.plan();
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await made.finish("r1");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "2" });
  });

  test("the next rollout records the revisions that no stage took", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    for (const commit of ["ccc", "ddd", "eee"]) await revise(made, commit);
    expect(made.rollouts()).toHaveLength(2);
    await made.finish("c1");
    await made.plan();
    expect(made.rollouts().at(-1)).toMatchObject({
      number: 3,
      revision: "main@sha1:eee",
      fromRevision: "main@sha1:bbb",
      skipped: { count: 2, from: "main@sha1:ccc", to: "main@sha1:ddd" },
    });
    for (const gone of ["skipped", "desired"]) expect(made.rolloutState()).not.toHaveProperty(gone);
  });

  test.each([
    ["started as soon as its revision is desired", "ddd", { count: 1, from: "main@sha1:ccc", to: "main@sha1:ccc" }],
    ["for the revision that was already desired", "ccc", undefined],
  ])(
    "a rollout that is %s records the revisions skipped before it, and not its own",
    async (_what, commit, skipped) => {
      const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
      await made.rollOut();
      await revise(made, "bbb");
      await revise(made, "ccc");
      await made.setSource(commit);
      await made.finish("c1");
      await made.plan();
      expect(made.rollouts().at(-1)).toMatchObject({ number: 3, revision: `main@sha1:${commit}` });
      expect(made.rollouts().at(-1)?.skipped).toEqual(skipped);
    },
  );

  test("the first rollout records the skipped revisions of a group that was created as suspended", async () => {
    const made = await worldOf(["a"], {});
    await made.operate({ suspended: ana(made.now) });
    for (const commit of ["aaa", "bbb", "ccc"]) await revise(made, commit);
    expect(made.rollouts()).toEqual([]);
    const { version } = made.rolloutState();
    await made.plan();
    expect(made.rolloutState().version).toBe(version);
    await made.operate({ resumed: ana(made.now) });
    await made.setSource("ddd");
    await made.plan();
    expect(made.rollouts()).toMatchObject([
      { number: 1, revision: "main@sha1:ddd", skipped: { count: 3, from: "main@sha1:aaa", to: "main@sha1:ccc" } },
    ]);
  });

  test("the next rollout records skipped revisions also when every call that saw them ran out of time", async () => {
    const made = await worldOf(
      { c1: "canary", c2: "canary", c3: "canary", r1: "rest" },
      { ...rings, maxConcurrent: 4 },
    );
    await made.rollOut();
    await revise(made, "bbb");
    const slow: Table = {
      ...counting(made.table).table,
      async write(writes) {
        await made.table.write(writes);
        made.advanceClock(61);
      },
    };
    for (const [cluster, commit] of [
      ["c1", "ccc"],
      ["c2", "ddd"],
    ] as const) {
      await made.setSource(commit);
      await made.finish(cluster);
      const { version } = made.rolloutState();
      await made.plan(slow);
      expect(made.rolloutState().version).toBe(version + 1);
    }
    await made.setSource("eee");
    await made.finish("c3");
    await made.plan();
    expect(made.rollouts().at(-1)).toMatchObject({
      revision: "main@sha1:eee",
      skipped: { count: 2, from: "main@sha1:ccc", to: "main@sha1:ddd" },
    });
  });

  test("a revision that is desired again starts no new rollout, and the next rollout records the skipped one", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    await revise(made, "ccc");
    expect(made.rolloutState().desired).toMatchObject({ revision: "main@sha1:ccc" });
    const { version } = made.rolloutState();
    await made.plan();
    expect(made.rolloutState().version).toBe(version);
    await revise(made, "bbb");
    const skipped = { count: 1, from: "main@sha1:ccc", to: "main@sha1:ccc" };
    expect(made.rolloutState()).toMatchObject({ skipped });
    expect(made.rolloutState()).not.toHaveProperty("desired");
    await revise(made, "ddd");
    await made.finish("c1");
    await made.plan();
    expect(made.rollouts().at(-1)).toMatchObject({ revision: "main@sha1:ddd", skipped });
  });

  test("a new rollout starts when an input of a member changes, and the other members are Unchanged", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, [{ ...web[0], path: "{{ cluster.labels.tier }}" }]);
    for (const name of ["a", "b"]) await made.addCluster(name, "all", { labels: { tier: "x" } });
    await made.rollOut();
    const { last } = made.rolloutState();
    await made.addCluster("b", "all", { labels: { tier: "y" } });
    await made.rollOut();
    expect(made.rolloutState().last).toBe(last + 1);
    expect(made.rollouts().at(-1)?.trigger).toBe("inputs");
    expect(made.states()).toEqual({ a: "Unchanged", b: "Succeeded" });
  });

  test.each([
    ["a later stage", [rings.stages[0], { name: "early", clusters: { names: ["none"] } }, rings.stages[1]], "early"],
    ["an optional first stage", [{ ...rings.stages[0], optional: true }, rings.stages[1]], "canary"],
  ])("a rollout passes an empty stage at once, and the stage run says so: %s", async (_which, stages, empty) => {
    const made = await worldOf(
      { [empty === "early" ? "c1" : "r2"]: empty === "early" ? "canary" : "rest", r1: "rest" },
      { stages: stages as never, maxConcurrent: 2 },
    );
    await made.rollOut();
    expect(made.stageRun(empty)).toMatchObject({ phase: "Passed", message: `stage ${empty} is empty: passed at once` });
  });

  test("a rollout does not go beyond a first stage without clusters, unless that stage is optional", async () => {
    const made = await worldOf({ r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await begin(made);
    const message =
      "no cluster matches stage canary; register one there, or set optional: true on the stage to pass without";
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", message });
    expect((await made.group()).status).toMatchObject({ state: "Stalled", conditions: [{ message }] });
    expect(await made.sync("r1")).toBeUndefined();
    const [canary, rest] = rings.stages;
    await made.setGroup({ maxConcurrent: 2, stages: [{ ...canary, optional: true }, rest] as never });
    await made.rollOut();
    expect((await made.sync("r1"))?.observed?.phase).toBe("Ready");
  });

  test("a cluster that joins an empty first stage verifies the rollout before any other cluster gets it", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await made.removeCluster("c1");
    await revise(made, "bbb");
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    await made.addCluster("c1", "canary", { uid: "anew" });
    await begin(made);
    expect((await made.sync("c1"))?.desired).toMatchObject({ rollout: 2 });
    await allSay(made, "Failed");
    expect(made.stageRun("canary").phase).toBe("Halted");
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
  });

  test("a rollout of a group without clusters is verified in the first stage by the clusters that return", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    for (const name of ["c1", "r1"]) await made.removeCluster(name);
    await revise(made, "bbb");
    expect((await made.group()).status.state).toBe("NoClusters");
    for (const [name, ring] of [
      ["c1", "canary"],
      ["r1", "rest"],
    ] as const)
      await made.addCluster(name, ring, { uid: `${name}-anew` });
    await begin(made);
    await made.finish("c1", "Failed");
    await made.plan();
    expect((await made.sync("r1"))?.desired.rollout ?? 1).toBe(1);
  });
});

describe("a stage that takes over from a stalled stage run", () => {
  test("clusters that were assigned the unpassed rollout get the newer one first", async () => {
    const made = await worldOf(names(6), { maxConcurrent: 2 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c000");
    await made.plan();
    await made.finish("c002", "Failed");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    await made.setGroup({ maxConcurrent: 1 });
    await made.setSource("ccc");
    await made.plan();
    await made.renderAll();
    await made.finish("c001");
    await made.plan();
    const order: string[] = [];
    for (let round = 0; round < 6; round++) {
      const [slot] = made.slots();
      if (slot === undefined) break;
      order.push(slot.cluster);
      await made.finish(slot.cluster);
      await made.plan();
    }
    expect(order.slice(0, 3).sort()).toEqual(["c000", "c001", "c002"]);
    expect(made.stages()).toEqual({ all: "3" });
  });

  test("a cluster that only verifies gets the newer rollout in its slot, and one that applies finishes first", async () => {
    const made = await worldOf(names(4), { maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("c000", "Verifying");
    await made.observe("c001", "Applying");
    await made.finish("c002", "Failed");
    await made.plan();
    await revise(made, "ccc");
    const revision = async (name: string) => (await made.sync(name))?.desired.revision;
    expect(await revision("c000")).toBe("main@sha1:ccc");
    expect(await revision("c001")).toBe("main@sha1:bbb");
    expect(made.slots().length).toBeLessThanOrEqual(3);
    await made.finish("c001");
    await made.rollOut();
    expect(await revision("c001")).toBe("main@sha1:ccc");
  });

  test("a cluster with a Sync that failed before is assigned that Sync again, also when its content is the same", async () => {
    const pace = { maxConcurrent: 2 };
    const template = (name: string, path: string) => ({ name, source: "app", path });
    const made = await worldOf(["a", "b"], pace, [template("app", "app1"), template("data", "data1")]);
    await made.rollOut();
    await made.setGroup(pace, [template("app", "app2"), template("data", "data2")]);
    await begin(made);
    await made.observe("a", "Ready");
    await made.observe("a", "Failed", { name: "web.data" });
    await made.finish("b");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    // The template is dropped, and added again before any cluster lost it.
    await made.setGroup(pace, [template("app", "app3")]);
    await made.plan();
    await made.setGroup(pace, [template("app", "app3"), template("data", "data2")]);
    await begin(made);
    expect(made.slots().map(({ attempts }) => attempts)).toEqual([{ "web.app": 3 }, { "web.app": 3 }]);
    await made.finish("b", "Failed");
    await begin(made);
    expect(made.stages()).toEqual({ all: "1 (4)" });
    expect((await made.sync("a", "web.data"))?.paused).toBeUndefined();
    expect(made.slots()[0]?.attempts).toEqual({ "web.app": 4, "web.data": 3 });
  });

  test("a new snapshot of the same rollout keeps the attempts in progress", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, ownPaths);
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("a", "Applying");
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    expect(made.stageRun("all").counts).toMatchObject({ Assigned: 2 });
    await allSay(made, "Ready");
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 2 } });
  });
});

describe("a refresh of a group", () => {
  test("a refresh takes one new snapshot of the stage run in progress, and keeps passed stages", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 2 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.plan();
    await made.finish("r1", "Failed");
    await made.plan();
    expect(stageRuns(made).slice(2)).toEqual(["2 canary Passed", "2 rest Halted"]);
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    expect(stageRuns(made).slice(2)).toEqual(["2 canary Passed", "2 rest Superseded", "2 rest Updating"]);
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.stageRuns()).toHaveLength(5);
    await made.rollOut();
    expect((await made.sync("c1"))?.desired.attempt).toBe(2);
    expect((await made.sync("r1"))?.desired.attempt).toBe(3);
  });

  test("a refresh is named as the cause in the end of the stage run that it replaces", async () => {
    const made = await worldOf({ c1: "canary" }, rings);
    await made.rollOut();
    await revise(made, "bbb");
    await made.plan();
    await made.operate({ refresh: { ...ana(made.now), reason: "c9 has new values" } });
    await made.plan();
    const ended = made.stageRuns().filter(({ phase }) => phase === "Superseded");
    expect(ended.map(({ message }) => message)).toEqual([
      "a new snapshot replaced this stage run in canary, because of a refresh by ana: c9 has new values",
    ]);
  });

  test("a refresh takes a new snapshot of each of several stage runs", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.plan();
    await revise(made, "ccc");
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    expect(stageRuns(made).filter((stageRun) => stageRun.endsWith("Superseded"))).toEqual([
      "2 rest Superseded",
      "3 canary Superseded",
    ]);
    await made.rollOut();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  });

  test("a refresh of an idle group is handled at once, and takes no snapshot", async () => {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    expect(made.rolloutState().handledRefresh).toBe((await made.group()).operations.refresh?.number);
    expect(made.stageRuns()).toHaveLength(1);
  });

  test("a refresh takes the present stages: a cluster that changed stage is a target in its new stage", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
    await begin(made);
    await allSay(made, "Failed");
    expect(made.stageRun("canary").phase).toBe("Halted");
    await made.addCluster("c1", "rest");
    await made.addCluster("c2", "canary");
    await made.operate({ refresh: ana(made.now) });
    await playOn(made, 5);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    expect(made.stageRun("canary").size).toBe(1);
    expect(made.stageRun("rest").size).toBe(2);
  });
});

describe("verified clusters after a refresh", () => {
  const refresh = async (made: PlannerWorld) => {
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
  };

  test("a refresh keeps the only verified cluster as Succeeded", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 0 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("a");
    await made.finish("b", "Unreachable");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("TooManyUnreachable");
    await refresh(made);
    expect(made.stageRun("all").counts).toMatchObject({ Assigned: 1, Succeeded: 1, Unchanged: 0 });
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
    await made.finish("b", "Unreachable");
    await made.setGroup({ maxConcurrent: 2, maxUnreachable: 1 });
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Passed");
  });

  test("a refresh keeps a percentage budget relative to all targets that the rollout changes", async () => {
    const made = await worldOf(names(10), { maxConcurrent: 10, maxFailures: "20%" });
    await made.rollOut();
    await revise(made, "bbb");
    for (const name of names(10)) await made.finish(name, name < "c003" ? "Failed" : "Ready");
    await made.plan();
    expect(made.stageRun("all").message).toContain("3 of 10 clusters failed in stage all (allowed: 2)");
    await refresh(made);
    await made.finish("c000", "Failed");
    for (const name of ["c001", "c002"]) await made.finish(name);
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 9, Failed: 1, Unchanged: 0 } });
  });

  test("a refresh keeps the clusters verified from which a rollout only deleted something", async () => {
    const pace = { maxConcurrent: 2, maxUnreachable: 0 };
    const made = await worldOf(["a", "b"], pace, [...web, { name: "data", source: "app" }]);
    await made.rollOut();
    await made.setGroup(pace, web);
    await begin(made);
    await made.finish("a");
    await made.finish("b", "Unreachable");
    await made.plan();
    await refresh(made);
    expect(made.stageRun("all").counts).toMatchObject({ Assigned: 1, Succeeded: 1, Unchanged: 0 });
  });

  test("a second refresh before any check keeps the verified clusters, too", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, maxUnreachable: 0 });
    await made.rollOut();
    await revise(made, "bbb");
    for (const name of ["a", "b"]) await made.finish(name);
    await made.finish("c", "Unreachable");
    await made.plan();
    // No target is checked under a freeze of every cluster.
    const freeze = { name: "inc-1", by: "ana", at: made.now.toISOString(), reason: "INC-1" };
    const freezeState = { ...keys.freezeState, type: "Freezes", schema: rowSchema, version: 1, lifted: [] } as const;
    await made.table.write([{ put: { ...freezeState, freezes: [freeze] } as FreezesRow }]);
    await refresh(made);
    await refresh(made);
    expect(made.stageRun("all").counts).toMatchObject({ Waiting: 3 });
    await made.table.write([{ put: { ...freezeState, freezes: [] } as FreezesRow }]);
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ snapshot: 4, counts: { Assigned: 1, Succeeded: 2 } });
  });

  test("a refresh does not count clusters as verified that failed since or needed no change", async () => {
    const pace = { maxConcurrent: 3, maxFailures: 2, maxUnreachable: 0 };
    const made = await worldOf(["a", "b", "c"], pace, ownPaths);
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    // The rendering for `c` is the same as before.
    await made.renderAll(undefined, ({ path }) => path !== "clusters/c");
    const [own] = made
      .rows<RenderingRow>("Rendering")
      .filter(({ path, state }) => path === "clusters/c" && state === "Done");
    for (const row of made.rows<RenderingRow>("Rendering"))
      if (row.state === "Pending") {
        const digest = own?.digest ?? "";
        const done = { state: "Done", digest, objects: 1, doneAt: made.now.toISOString() } as const;
        const put: RenderingRow = { ...row, ...done, version: row.version + 1 };
        await made.table.write([{ put, when: { version: row.version } }]);
      }
    await made.plan();
    await made.finish("a");
    await made.finish("b", "Unreachable");
    await made.plan();
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 1, Unchanged: 1, Unreachable: 1 });
    await made.observe("a", "Failed");
    await refresh(made);
    expect(made.stageRun("all").counts).toMatchObject({ Assigned: 2, Succeeded: 0, Unchanged: 1 });
    for (const name of ["a", "b"]) await made.finish(name, "Failed");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("NothingVerified");
  });
});

describe("rows that were recovered from their clusters", () => {
  const recover = (made: PlannerWorld) => made.operate({ recovered: ana(made.now) });

  test("one rollout checks all recovered rows once", async () => {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    await recover(made);
    await made.rollOut();
    expect(made.rollouts().at(-1)).toMatchObject({ number: 2, trigger: "recover" });
    for (let check = 0; check < 3; check++) await made.plan();
    expect(made.rolloutState().last).toBe(2);
  });

  test("the rollout after the one in progress brings recovered clusters to the newest revision", async () => {
    const made = await worldOf({ a: "canary", b: "rest", c: "rest" }, { ...rings, maxConcurrent: 1 });
    await begin(made);
    await made.finish("a");
    await made.plan();
    await made.setSource("new");
    await recover(made);
    await made.rollOut();
    for (const name of ["a", "b", "c"]) expect((await made.sync(name))?.desired.revision, name).toBe("main@sha1:new");
    const { last } = made.rolloutState();
    await made.plan();
    expect(made.rolloutState().last).toBe(last);
  });
});

test("a cluster with an attempt of an older rollout keeps its slot, and gets the newest rollout in it", async () => {
  const made = await worldOf(names(20), { maxConcurrent: 2 });
  await begin(made);
  for (const name of names(18)) await made.finish(name).then(() => made.plan());
  await made.observe("c019", "Applying");
  await made.finish("c018", "Failed");
  await revise(made, "bbb");
  await made.finish("c000", "Failed");
  await revise(made, "ccc");
  expect(made.slots().map(({ cluster, rollout }) => [cluster, rollout])).toEqual([
    ["c000", 3],
    ["c019", 1],
  ]);
  await made.observe("c019", "Verifying");
  await made.plan();
  expect((await made.sync("c019"))?.desired.revision).toBe("main@sha1:ccc");
});
