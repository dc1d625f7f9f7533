/** Stages that only get other names are the same stages: no attempt begins, halts or is repeated by a rename. */
import { describe, expect, test } from "vitest";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, ana, begin, names, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const [canary] = rings.stages;
/** `canary` becomes `first`, and `rest` becomes `others`. */
const renamed = { stages: [{ ...canary, name: "first" }, { name: "others" }] };
const pace = { maxConcurrent: 4, maxFailures: 1, maxUnreachable: 1 } as const;
const fleet = { c1: "canary", c2: "canary", c3: "canary", r1: "rest", r2: "rest" };

const attempts = async (made: PlannerWorld) =>
  Object.fromEntries(
    await Promise.all(Object.keys(fleet).map(async (name) => [name, (await made.sync(name))?.desired.attempt])),
  );

test("a rename in an idle group starts nothing, and retries no failed cluster", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace });
  await begin(made);
  await made.finish("c1", "Failed");
  await made.plan();
  await allSay(made, "Ready");
  await allSay(made, "Ready");
  expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  const before = await attempts(made);
  await made.setGroup({ ...renamed, ...pace });
  await playOn(made, 2);
  expect(made.stages()).toEqual({ first: "1", others: "1" });
  expect(await attempts(made)).toEqual(before);
  expect(made.stageRuns()).toHaveLength(2);
  expect((await made.group()).status).toMatchObject({ state: "Degraded", clusters: { ready: 4, failed: 1 } });
  await made.addCluster("c4", "canary");
  await playOn(made, 2);
  expect((await made.sync("c4"))?.observed?.phase).toBe("Ready");
  await made.setSource("bbb");
  await made.rollOut();
  expect(made.stages()).toEqual({ first: "2", others: "2" });
});

test("a rename retries no failed cluster, also when another cluster becomes readable at the same time", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace });
  const setSchema = (schema: number) =>
    made.table.write([{ update: keys.fleet("r2"), set: { schema } }, fleetVersionUpdate("r2")]);
  await begin(made);
  await made.finish("c1", "Failed");
  await made.plan();
  await allSay(made, "Ready");
  await allSay(made, "Ready");
  await setSchema(newestRowSchema + 1);
  await made.plan();
  expect(made.rolloutState().unreadable).toEqual(["r2"]);
  const before = await attempts(made);
  await setSchema(rowSchema);
  await made.setGroup({ ...renamed, ...pace });
  await playOn(made, 2);
  expect(made.rolloutState().unreadable).toEqual([]);
  expect(await attempts(made)).toMatchObject({ ...before, r2: expect.any(Number) });
  expect(made.stageRuns()).toHaveLength(2);
});

test("a cluster that only a newer version can read stays in its renamed stage, and counts there", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace });
  await begin(made);
  await made.table.write([
    { update: keys.fleet("r2"), set: { schema: newestRowSchema + 1 } },
    fleetVersionUpdate("r2"),
  ]);
  await made.setGroup({ ...renamed, ...pace });
  await playOn(made, 2);
  expect(made.rolloutState().stages.map(({ name, members }) => [name, members])).toEqual([
    ["first", 3],
    ["others", 2],
  ]);
});

test("a rename in a large fleet reads no Syncs", {
  timeout: 60_000,
}, async () => {
  const made = await worldOf(names(300), { maxConcurrent: "100%" });
  await made.rollOut();
  await made.setGroup({ maxConcurrent: "100%", stages: [{ name: "everybody" }] });
  const seen: string[] = [];
  const { table } = made;
  const getMany = table.getMany.bind(table);
  table.getMany = (keys, reading) => {
    seen.push(...keys.map(({ sk }) => sk));
    return getMany(keys, reading) as never;
  };
  await made.plan();
  expect(seen.filter((sk) => sk.startsWith("SYNC#"))).toEqual([]);
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
});

describe("a stage run in a stage that is renamed", () => {
  async function updatingTo(): Promise<PlannerWorld> {
    const made = await worldOf(fleet, { ...rings, ...pace });
    await made.rollOut();
    await revise(made, "bbb");
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c1", "c2", "c3"]);
    return made;
  }

  test("the stage run keeps its verified clusters and its attempts in progress, and an unreachable cluster gets another turn", async () => {
    const made = await updatingTo();
    await made.finish("c1");
    await made.finish("c2", "Unreachable");
    await made.plan();
    await made.setGroup({ ...renamed, ...pace });
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2", "c3"]);
    expect(await attempts(made)).toMatchObject({ c1: 2, c2: 3, c3: 2 });
    expect(made.stages()).toEqual({ first: "1 (2)", others: "1" });
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Superseded",
      message: "a new snapshot replaced this stage run in canary",
    });
    await made.setGroup({ ...renamed, ...pace, maxUnreachable: 2 });
    await allSay(made, "Unreachable");
    expect(made.stageRun("first")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Unreachable: 2 } });
    expect(made.stages()).toEqual({ first: "2", others: "1 (2)" });
  });

  test("a halted stage run starts nothing before a reconcile", async () => {
    const made = await updatingTo();
    await made.finish("c1", "Failed");
    await made.finish("c2", "Failed");
    await made.finish("c3");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Halted");
    const before = await attempts(made);
    await made.setGroup({ ...renamed, ...pace });
    await playOn(made, 2);
    expect(await attempts(made)).toEqual(before);
    expect(made.stages()).toEqual({ first: "1 (2)", others: "1" });
    expect((await made.group()).status).toMatchObject({ state: "Halted" });
    await made.operate({ reconcile: ana(made.now) });
    await playOn(made, 6);
    expect(made.stages()).toEqual({ first: "2", others: "2" });
  });

  test("a halted stage run passes when its budget is raised", async () => {
    const made = await updatingTo();
    await made.finish("c1", "Failed");
    await made.finish("c2", "Failed");
    await made.finish("c3");
    await made.plan();
    await made.setGroup({ ...renamed, ...pace, maxFailures: 2 });
    await made.plan();
    expect(made.stages()).toEqual({ first: "2", others: "1 (2)" });
  });

  test("a halted stage run gives way to a newer rollout", async () => {
    const made = await updatingTo();
    await allSay(made, "Failed");
    await made.setGroup({ ...renamed, ...pace });
    await made.plan();
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ first: "1 (3)", others: "1" });
    await playOn(made, 6);
    expect(made.stages()).toEqual({ first: "3", others: "3" });
  });
});

test("a cluster that returns to a renamed, halted stage does not get back a template that the rollout removed", async () => {
  const both = [...web, { name: "data", source: "app" }];
  const made = await worldOf(fleet, { ...rings, ...pace, maxFailures: 0 }, both);
  await made.rollOut();
  await made.setGroup({ ...rings, ...pace, maxFailures: 0 }, web);
  await made.plan();
  await made.finish("c1");
  await made.plan();
  await allSay(made, "Failed");
  expect(made.stageRun("canary").phase).toBe("Halted");
  expect(await made.sync("c1", "web.data")).toBeUndefined();
  await made.setGroup({ ...renamed, ...pace, maxFailures: 0 }, web);
  await made.plan();
  expect(made.stages()).toEqual({ first: "1 (2)", others: "1" });
  await made.observe("c1", "Reachable");
  await made.plan();
  expect(await made.sync("c1", "web.data")).toBeUndefined();
  expect(made.rows("CatchUp")).toEqual([]);
});

test("a failed catch-up is cleared when its renamed stage passes a newer rollout", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace });
  await made.rollOut();
  await made.addCluster("r3", "rest");
  await begin(made);
  await made.finish("r3", "Failed");
  await made.plan();
  expect(made.rolloutState().catchUps).toMatchObject({ failed: 1 });
  await made.setGroup({ ...renamed, ...pace });
  await made.setSource("bbb");
  await made.rollOut();
  expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
});

test.each([
  ["one more stage", [{ ...canary, name: "first" }, { name: "early", clusters: { names: ["r1"] } }, { name: "rest" }]],
  ["another selection", [{ name: "first", clusters: { names: ["c1", "c2"] } }, { name: "rest" }]],
])(
  "a renamed stage with %s is a new stage, which takes over the current rollout of the old one",
  async (_what, stages) => {
    const made = await worldOf(fleet, { ...rings, ...pace });
    await made.rollOut();
    await revise(made, "bbb");
    await allSay(made, "Ready");
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await made.setGroup({ ...pace, stages: stages as never });
    await made.plan();
    expect(made.stages().first).toBe("2");
    expect(made.stageRuns().filter(({ stage }) => stage === "first")).toHaveLength(1);
  },
);

test("clusters of stages that swap their names belong to the stage that now has the name", async () => {
  const made = await worldOf(fleet, { ...rings, ...pace }, web);
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, "Ready");
  expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  await made.setGroup({ ...pace, stages: [{ ...canary, name: "rest" }, { name: "canary" }] as never });
  await made.plan();
  expect(made.rolloutState().stages.map(({ name, current }) => [name, current])).toEqual([
    ["rest", 1],
    ["canary", 1],
  ]);
  await playOn(made, 6);
  expect(made.stages()).toEqual({ rest: "2", canary: "2" });
});

describe("a stage's own maxConcurrent after the stage is renamed", () => {
  const bound = { ...pace, maxFailures: 0 };
  /** One cluster may change at once in the stage of that name. */
  const one = (first: string) => ({
    ...bound,
    stages: [{ ...canary, name: first, maxConcurrent: 1 }, { name: "rest" }],
  });
  const holders = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

  async function joined(...clusters: readonly string[]): Promise<PlannerWorld> {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, one("canary") as never);
    await made.rollOut();
    for (const name of clusters) await made.addCluster(name, "canary");
    await begin(made);
    return made;
  }

  test("catch-ups stay within the maxConcurrent of the renamed stage", async () => {
    const made = await joined("c3", "c4");
    expect(holders(made)).toEqual(["c3"]);
    await made.setGroup(one("first") as never);
    await made.plan();
    expect(holders(made)).toEqual(["c3"]);
    expect(made.rolloutState()).toMatchObject({
      catchUps: { changing: 1 },
      stages: [{ changing: 0, catchingUp: 1 }, {}],
    });
    await made.finish("c3");
    await made.plan();
    expect(holders(made)).toEqual(["c4"]);
    await playOn(made, 1);
    expect(made.rolloutState()).toMatchObject({
      catchUps: { changing: 0 },
      stages: [{ changing: 0, catchingUp: 0 }, {}],
    });
  });

  test("a stage run waits while a catch-up uses the slot of the renamed stage", async () => {
    const made = await joined("c3");
    await revise(made, "bbb");
    expect(holders(made)).toEqual(["c3"]);
    await made.setGroup(one("first") as never);
    await begin(made);
    expect(holders(made)).toEqual(["c3"]);
    expect(made.stages()).toEqual({ first: "1 (2)", rest: "1" });
  });

  test("a stage run stays within the maxConcurrent with the attempts that are already in progress", async () => {
    const made = await joined();
    await revise(made, "bbb");
    expect(holders(made)).toEqual(["c1"]);
    await made.setGroup(one("first") as never);
    await made.plan();
    expect(holders(made)).toEqual(["c1"]);
    expect(made.stageRun("first").counts).toMatchObject({ Assigned: 1, Waiting: 1 });
    await playOn(made, 4);
    expect(made.stages()).toEqual({ first: "2", rest: "2" });
  });

  test("the maxConcurrent counts catch-ups when the stage is removed and added again under its new name", async () => {
    const made = await joined("c3", "c4");
    await made.setGroup(one("first") as never);
    await made.plan();
    await made.setGroup({ ...bound, stages: [{ name: "rest" }] } as never);
    await made.plan();
    await made.setGroup(one("first") as never);
    await made.plan();
    expect(made.rolloutState().stages).toMatchObject([{ changing: 0, catchingUp: 1 }, { catchingUp: 1 }]);
  });

  test("the slots of many clusters name the stage by its new name", async () => {
    const many = { ...pace, maxConcurrent: "100%" } as const;
    const made = await worldOf(names(150), { ...many, stages: [{ name: "rest" }] });
    await begin(made);
    await made.setGroup({ ...many, stages: [{ name: "all" }] });
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 0 }, stages: [{ changing: 150 }], jobs: [] });
    expect(new Set(made.slots().map(({ stage }) => stage))).toEqual(new Set(["all"]));
    await playOn(made, 1);
    expect(made.stages()).toEqual({ all: "1" });
  });

  test("no further cluster catches up in a renamed stage with too many failed catch-ups, before a reconcile", async () => {
    const made = await joined("c3", "c4", "c5");
    for (const name of ["c3", "c4"]) {
      await made.finish(name, "Failed");
      await made.plan();
    }
    expect(holders(made)).toEqual([]);
    await made.setGroup(one("first") as never);
    await made.plan();
    expect(holders(made)).toEqual([]);
    expect(made.rolloutState()).toMatchObject({
      catchUps: { waiting: 1, failed: 2 },
      stages: [{ failedCatchUps: 2 }, {}],
    });
    await made.operate({ reconcile: ana(made.now) });
    await playOn(made, 3);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });
});
