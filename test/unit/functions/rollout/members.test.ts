import { beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Write } from "#shared/ports.ts";
import {
  allSay,
  ana,
  begin,
  counting,
  names,
  playOn,
  revise,
  rings,
  web,
  worldOf,
} from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const fleetOfWeb = { notNames: ["none"], all: true };
const group = { ...rings, maxConcurrent: 6, maxUnreachable: 0 };

describe.each(["idle", "updatingTo", "halted"] as const)("a group that is %s", (situation) => {
  let made: PlannerWorld;

  beforeEach(async () => {
    made = await worldOf({ c1: "canary", c2: "canary", r1: "rest", r2: "rest" }, group, web, fleetOfWeb);
    await made.rollOut();
    if (situation === "idle") return;
    await revise(made, "bbb");
    await allSay(made, "Ready");
    await begin(made);
    if (situation === "halted") await allSay(made, "Failed");
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  });

  const revision = async (name: string) => (await made.sync(name))?.desired.revision;
  const [ofCanary, ofRest] = situation === "idle" ? ["aaa", "aaa"] : ["bbb", "aaa"];

  test("a cluster that joins gets the current rollout of its stage", async () => {
    await made.addCluster("c9", "canary");
    await made.addCluster("r9", "rest");
    await made.plan();
    expect([await revision("c9"), await revision("r9")]).toEqual([`main@sha1:${ofCanary}`, `main@sha1:${ofRest}`]);
    expect(made.rollouts()).toHaveLength(situation === "idle" ? 1 : 2);
  });

  test("a cluster that leaves is forgotten, loses its slot, and keeps its objects", async () => {
    await made.removeCluster("r1");
    await made.plan();
    expect((await made.sync("r1"))?.desired.action).toBe("orphan");
    expect(made.slots().map(({ cluster }) => cluster)).not.toContain("r1");
    await made.addCluster("other", "rest");
    expect((await made.group()).status.clusters?.selected).toBe(3);
  });

  test("a cluster that returns gets the current rollout of its stage, and its attempts are numbered on", async () => {
    const before = (await made.sync("r1"))?.desired.attempt ?? 0;
    await made.removeCluster("r1");
    await made.plan();
    await made.addCluster("r1", "rest");
    await made.plan();
    const { desired } = (await made.sync("r1")) ?? {};
    expect(desired).toMatchObject({ action: "apply", revision: `main@sha1:${ofRest}` });
    expect(desired?.attempt).toBeGreaterThan(before);
  });

  test("a cluster that moves to a stage that is ahead gets the current rollout of that stage", async () => {
    await made.addCluster("r2", "canary");
    if (situation === "updatingTo") await allSay(made, "Ready");
    await playOn(made, 2);
    expect(await revision("r2")).toBe(`main@sha1:${ofCanary}`);
  });

  test("a cluster that moves to a stage that is behind keeps its newer rollout", async () => {
    const before = (await made.sync("c2"))?.desired.attempt;
    await made.addCluster("c2", "rest");
    await made.plan();
    expect(await revision("c2")).toBe(`main@sha1:${ofCanary}`);
    expect((await made.sync("c2"))?.desired.attempt).toBe(before);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("a cluster that is registered anew under its name starts over", async () => {
    await made.table.write([{ delete: keys.sync("c1", "shop", "web.app") }]);
    await made.addCluster("c1", "canary", { uid: "another" });
    await made.plan();
    expect((await made.sync("c1"))?.desired).toMatchObject({ attempt: 1, revision: `main@sha1:${ofCanary}` });
  });

  test("the planner reads the fleet once for each change of it", async () => {
    await made.addCluster("c9", "canary");
    await made.plan();
    let reads = 0;
    const query = made.table.query.bind(made.table);
    made.table.query = (range) => {
      if (range.pk === "FLEET") reads++;
      return query(range);
    };
    for (let check = 0; check < 3; check++) await made.plan();
    expect(reads).toBe(0);
  });
});

describe("a cluster that is no longer selected", () => {
  const selected = { selector: { matchLabels: { ring: "all" } } };

  test("a cluster that is deselected before its turn is skipped, and catches up when it is selected again", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, web, selected);
    await begin(made);
    await made.addCluster("b", "none");
    await made.observe("a", "Ready");
    await made.plan();
    expect(made.targets(1).map(({ state }) => state)).toEqual(["Succeeded", "Skipped"]);
    expect(await made.sync("b")).toBeUndefined();
    await made.addCluster("b", "all");
    await made.rollOut();
    expect((await made.sync("b"))?.desired.action).toBe("apply");
  });

  test("a cluster that is deselected while it has a slot is forgotten, and the stage run goes on without it", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, web, selected);
    await begin(made);
    await made.observe("a", "Applying");
    await made.addCluster("a", "none");
    await made.plan();
    expect(made.states()).toEqual({ a: "Skipped", b: "Assigned" });
    expect((await made.sync("a"))?.desired.action).toBe("orphan");
  });

  test("a cluster that is deselected while it holds a slot of a superseded rollout is forgotten, and the newer rollout goes on", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 2 }, web, selected);
    await made.rollOut();
    await revise(made, "bbb");
    await made.observe("a", "Applying");
    await made.finish("b", "Failed");
    await made.plan();
    await revise(made, "ccc");
    expect(made.slots().map(({ cluster, rollout }) => [cluster, rollout])).toEqual([
      ["a", 2],
      ["b", 3],
    ]);
    await made.addCluster("a", "none");
    await made.plan();
    expect((await made.sync("a"))?.desired.action).toBe("orphan");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["b", "c"]);
    await playOn(made, 3);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 2, Skipped: 1 } });
    expect(made.stageRuns().map(({ rollout, phase }) => `${rollout} ${phase}`)).toEqual([
      "1 Passed",
      "2 Superseded",
      "3 Passed",
    ]);
  });

  test("a stage run does not wait for an unreachable cluster that is deselected", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 0 }, web, selected);
    await begin(made);
    await made.finish("b");
    await made.finish("a", "Unreachable");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("TooManyUnreachable");
    await made.addCluster("a", "none");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({
      phase: "Passed",
      counts: { Succeeded: 1, Skipped: 1, Unreachable: 0 },
    });
  });

  test("a deselected cluster is forgotten although newer rollouts follow", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 }, web, selected);
    await made.rollOut();
    await made.addCluster("b", "none");
    await made.setSource("bbb");
    await made.plan();
    await made.setSource("ccc");
    await made.rollOut();
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
  });
});

describe("a group with the name of an earlier, deleted group", () => {
  test("a Sync that the earlier group left is assigned anew, without the old observation", async () => {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    const left = await made.sync("a");
    expect(left).toMatchObject({ desired: { action: "orphan" }, observed: { phase: "Ready" } });
    await made.setGroup({});
    const row = await made.group();
    const another: SyncGroupRow = { ...row, version: row.version + 1, uid: "uid-of-another" };
    await made.table.write([{ put: another }]);
    await begin(made);
    const sync = await made.sync("a");
    expect(sync).toMatchObject({ desired: { action: "apply", keptThrough: left?.desired.attempt } });
    expect(sync?.observed).toBeUndefined();
    expect(sync?.desired.earlier).toContain(left?.desired.token);
  });

  test("the new group starts afresh, whatever was in progress when the earlier group was deleted", async () => {
    const made = await worldOf({ a: "canary", b: "rest" }, { ...rings, maxConcurrent: 4 });
    await made.rollOut();
    await made.addCluster("new", "rest");
    await made.addCluster("late", "rest");
    await made.plan();
    await made.finish("late", "Failed");
    await made.plan();
    expect(made.slots()).toHaveLength(1);
    await made.addCluster("waits", "rest");
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    expect([made.rows("SyncGroup"), made.rows("Slot"), made.rows("CatchUp")]).toEqual([[], [], []]);
    await made.setGroup({ ...rings, maxConcurrent: 4 });
    const row = await made.group();
    const another: SyncGroupRow = { ...row, version: row.version + 1, uid: "uid-of-another" };
    await made.table.write([{ put: another }]);
    expect((await made.group()).status.revision).toBeUndefined();
    await made.rollOut();
    for (const { cluster, desired } of made.rows<SyncRow>("SyncOnCluster"))
      expect(desired.action, cluster).toBe("apply");
    expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 5, ready: 5 } });
  });

  test("a group that selects a cluster again assigns the Sync that it left there", async () => {
    const made = await worldOf(["a", "b"], {});
    await made.rollOut();
    await made.removeCluster("b");
    await made.rollOut();
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
    await made.addCluster("b", "all");
    await begin(made);
    expect((await made.sync("b"))?.desired).toMatchObject({ action: "apply" });
  });
});

test("stages that replace a single stage take over its current rollout, and a cluster that joins gets it", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.setGroup({ ...rings, maxConcurrent: 2 });
  await made.plan();
  expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  await made.addCluster("c", "canary");
  await made.plan();
  expect((await made.sync("c"))?.desired.action).toBe("apply");
  expect((await made.sync("a"))?.desired.attempt).toBe(1);
});

test("a reconcile skips no cluster when the positions in the list of members change", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3 });
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  await made.plan();
  await made.observe("a", "Ready");
  await made.plan();
  await made.removeCluster("a");
  await made.observe("c", "Ready");
  await made.plan();
  expect((await made.group()).status.reconciled).toBeUndefined();
  await made.observe("b", "Ready");
  await made.plan();
  expect((await made.group()).status.reconciled).toBe(1);
});

test("a reconcile ends after its deadline, however often the members change", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3 });
  await made.rollOut();
  await made.operate({ reconcile: ana(made.now) });
  await made.plan();
  for (const name of ["a", "c"]) await made.observe(name, "Ready");
  for (let time = 0; time < 10; time++) {
    await made.plan();
    expect((await made.group()).status.reconciled).toBeUndefined();
    made.advanceClock(60);
    await made.addCluster("c", "all", { labels: { time: String(time) } });
  }
  await made.plan();
  expect((await made.group()).status).toMatchObject({ reconciled: 1, clusters: { ready: 2, changing: 1 } });
});

describe("a stage that loses every cluster that was to verify a rollout", () => {
  const withoutCanary = async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 4 });
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    await made.removeCluster("c1");
    return made;
  };

  test("the stage takes a new snapshot with the clusters that replace them, before later stages get the rollout", async () => {
    const made = await withoutCanary();
    await made.addCluster("c1", "canary", { uid: "anew" });
    await begin(made);
    await made.finish("c1", "Failed");
    await made.plan();
    await made.finish("c1", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
    await made.operate({ reconcile: ana(made.now) });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("the stage takes a new snapshot also when its other clusters need no change", async () => {
    const made = await worldOf({}, { ...rings, maxConcurrent: 4 }, [
      { name: "app", source: "app", path: "{{ cluster.labels.part }}" },
    ]);
    const add = (name: string, ring: string, part: string) => made.addCluster(name, ring, { labels: { part } });
    for (const name of ["c1", "c2"]) await add(name, "canary", "one");
    await add("r1", "rest", "one");
    await made.rollOut();
    await add("c2", "canary", "two");
    await add("r1", "rest", "two");
    await made.plan();
    expect(made.stageRun("canary").counts).toMatchObject({ Unchanged: 1, Rendering: 1 });
    await made.removeCluster("c2");
    await made.addCluster("c2", "canary", { uid: "anew", labels: { part: "two" } });
    await begin(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("a stage without any cluster left verifies nothing, and no later stage gets the rollout", async () => {
    const made = await withoutCanary();
    await begin(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    const message = "nothing verified in stage canary: 1 cluster left before it was verified";
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", message });
    await playOn(made, 3);
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
  });

  test("clusters that need no change verify nothing, whatever new snapshot is taken", async () => {
    const path = [{ name: "app", source: "app", path: "{{ cluster.labels.part }}" }];
    const made = await worldOf({}, { ...rings, maxConcurrent: 4 }, path);
    const add = (name: string, ring: string, part: string) => made.addCluster(name, ring, { labels: { part } });
    for (const name of ["c1", "c2"]) await add(name, "canary", "one");
    await add("r1", "rest", "one");
    await made.rollOut();
    for (const [name, ring] of [
      ["c2", "canary"],
      ["r1", "rest"],
    ] as const)
      await add(name, ring, "two");
    await begin(made);
    await made.finish("c2", "Failed");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Halted");
    await made.removeCluster("c2");
    await begin(made);
    await made.operate({ refresh: ana(made.now) });
    await playOn(made, 3);
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", counts: { Unchanged: 1 } });
    expect((await made.sync("r1"))?.desired).toMatchObject({ rollout: 1 });
  });

  test("the stage waits for the list of its present members", async () => {
    const made = await withoutCanary();
    await made.addCluster("c1", "canary", { uid: "two" });
    const { table } = made;
    const write = table.write.bind(table);
    // The first write is that of the list.
    table.write = async (writes) => {
      table.write = write;
      await write(writes);
      await made.addCluster("c1", "canary", { uid: "three" });
    };
    await made.plan();
    expect(made.rolloutState().membersVersion).toBe(2);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Updating", counts: { Skipped: 0, Waiting: 1 } });
    await begin(made);
    expect(made.stageRun("canary")).toMatchObject({ membersVersion: 3, phase: "Updating", counts: { Skipped: 0 } });
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
  });
});

test("a fleet that changes at every check does not add to the jobs in progress", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 1 });
  await made.rollOut();
  for (const name of names(100)) await made.addCluster(name, "all");
  const { table } = made;
  const slow = { ...counting(table).table, write: async (writes: readonly Write[]) => hurried(writes) };
  // The call's time ends after one page.
  const hurried = async (writes: readonly Write[]) => {
    made.advanceClock(60);
    await table.write(writes);
  };
  for (let check = 0; check < 4; check++) {
    await made.addCluster(`late${check}`, "all");
    await made.plan(slow);
    expect(made.rolloutState().jobs.length, `${check}`).toBeLessThan(2);
  }
});

test("a cluster that is registered anew under its name inherits no observation of the earlier cluster", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.observe("a", "Failed");
  const { desired } = (await made.sync("a")) ?? {};
  await made.addCluster("a", "all", { uid: "another" });
  await made.plan();
  const { observed, desired: next } = (await made.sync("a")) ?? {};
  expect(observed).toBeUndefined();
  expect(next).toMatchObject({ action: "apply" });
  expect(next).not.toHaveProperty("preexisting");
  expect(next?.attempt).toBeGreaterThan(desired?.attempt ?? 0);
});
