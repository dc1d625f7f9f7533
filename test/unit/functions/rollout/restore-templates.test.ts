import { describe, expect, test } from "vitest";
import type { CatchUpRow } from "#shared/fleet/rows/rollout-rows.ts";
import { ana, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const both = [...web, { name: "data", source: "app" }];
const pace = { maxConcurrent: 4 };
const data = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster, "web.data"))?.desired;
const app = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster))?.desired;

/** `data` is dropped together with another revision: `a` is done with that rollout, and `b` and `c` are working on it. */
async function dropped(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b", "c"], pace, both);
  await made.rollOut();
  await made.setGroup(pace, web);
  await revise(made, "bbb");
  await made.finish("a");
  await made.plan();
  expect(await made.sync("a", "web.data")).toBeUndefined();
  for (const name of ["b", "c"]) expect(await data(made, name)).toMatchObject({ action: "delete" });
  return made;
}

describe("a template that is dropped and added again", () => {
  test("a cluster that lost the template gets it back from the stage's current rollout, while another rollout is in progress", async () => {
    const made = await dropped();
    await made.setGroup(pace, both);
    await made.plan(made.table, []);
    expect(made.stages()).toEqual({ all: "1 (2)" });
    expect(await data(made, "a")).toMatchObject({ action: "apply", revision: "main@sha1:aaa", rollout: 1 });
    expect(await app(made, "a")).toMatchObject({ revision: "main@sha1:bbb", attempt: 2 });
    await playOn(made);
    for (const name of ["a", "b", "c"]) {
      expect(await data(made, name)).toMatchObject({ action: "apply", revision: "main@sha1:bbb" });
      expect(await app(made, name)).toMatchObject({ revision: "main@sha1:bbb" });
    }
    expect(made.rows("CatchUp")).toEqual([]);
    expect((await made.group()).status.clusters).toMatchObject({ selected: 3, ready: 3 });
  });

  test("a cluster whose deletion the planner sees only later gets the template back then", async () => {
    const made = await dropped();
    await made.finish("b");
    await made.setGroup(pace, both);
    await made.plan(made.table, []);
    expect(await data(made, "b")).toMatchObject({ action: "delete" });
    await made.plan(made.table, ["b"]);
    expect(await data(made, "b")).toMatchObject({ action: "apply", revision: "main@sha1:aaa" });
  });

  test("a cluster gets the template back once for each time that it lost it, and a cluster that has it gets nothing", async () => {
    const made = await dropped();
    await made.plan();
    expect(await made.sync("a", "web.data")).toBeUndefined();
    for (let time = 0; time < 2; time++) {
      await made.setGroup(pace, both);
      await made.plan(made.table, []);
      await made.finish("a");
      await made.plan(made.table, ["a"]);
      expect(await data(made, "a")).toMatchObject({ action: "apply", attempt: 1 });
      expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
      await made.setGroup(pace, web);
      await made.plan(made.table, []);
    }
    expect(made.stages()).toEqual({ all: "1 (2)" });
  });

  test("a cluster that did not lose the template does not wait for it", async () => {
    const paths = [{ ...web[0], path: "clusters/{{ cluster.name }}" }];
    const all = [...paths, { name: "data", source: "app" }];
    const made = await worldOf(["a", "b", "c"], { ...pace, maxFailures: 1 }, all);
    await made.rollOut();
    await made.setGroup({ ...pace, maxFailures: 1 }, paths);
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll("no kind", ({ path }) => path === "clusters/b");
    await made.renderAll();
    await made.plan();
    await made.finish("a");
    await made.plan();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Failed", c: "Assigned" });
    await made.setGroup({ ...pace, maxFailures: 1 }, all);
    await made.operate({ suspended: ana(made.now) });
    await made.plan(made.table, []);
    expect(made.rows<CatchUpRow>("CatchUp").map(({ cluster }) => cluster)).toEqual(["a"]);
  });

  test("a cluster of a later stage gets the template back, and keeps the newer revision of its other Sync", async () => {
    const made = await worldOf({ c: "canary", r: "rest", s: "rest" }, { ...rings, ...pace }, both);
    await made.rollOut();
    await made.setGroup({ ...rings, ...pace }, web);
    await revise(made, "bbb");
    await made.finish("c");
    await made.plan();
    await made.finish("r");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await made.setSource("ccc");
    await made.setGroup({ ...rings, ...pace }, both);
    await made.plan();
    expect(await data(made, "r")).toMatchObject({ action: "apply", revision: "main@sha1:aaa" });
    expect(await app(made, "r")).toMatchObject({ revision: "main@sha1:bbb" });
  });
});

test("a cluster that lost the template in a stage that was removed gets it back in its new stage, without being a target there", async () => {
  const stage = (name: string) => ({ name, clusters: { selector: { matchLabels: { ring: name } } } });
  const [first, early, rest] = [stage("first"), stage("early"), { name: "rest" }];
  const made = await worldOf({ f: "first", e: "early", r: "rest" }, { ...pace, stages: [first, early, rest] }, both);
  await made.rollOut();
  await made.setGroup({ ...pace, stages: [first, early, rest] }, web);
  await revise(made, "bbb");
  for (const name of ["f", "e"]) {
    await made.finish(name);
    await made.plan();
  }
  expect(made.stages()).toEqual({ first: "2", early: "2", rest: "1 (2)" });
  await made.setGroup({ ...pace, stages: [first, rest] }, web);
  await made.plan();
  expect(await made.sync("e", "web.data")).toBeUndefined();
  // The renderings of the next rollout are not made.
  await made.setSource("ccc");
  await made.setGroup({ ...pace, stages: [first, rest] }, both);
  await made.plan();
  expect(made.stages()).toEqual({ first: "2 (3)", rest: "1 (2)" });
  expect(await data(made, "e")).toMatchObject({ action: "apply", revision: "main@sha1:aaa", rollout: 1 });
  expect(await app(made, "e")).toMatchObject({ revision: "main@sha1:bbb" });
  await made.finish("e");
  await made.plan();
  expect(made.rows("CatchUp")).toEqual([]);
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["r"]);
});

test("a cluster that gets a template back keeps another Sync that was disabled for it in that earlier rollout", async () => {
  const [data, extra] = ["data", "extra"].map((name) => ({ name, source: "app", path: name }));
  const overrides = [{ clusters: { names: ["a"] }, disabled: true }];
  const pace = { maxConcurrent: 2 };
  const made = await worldOf(["a", "b", "c", "d"], pace, [...web, data, { ...extra, overrides }]);
  await made.rollOut();
  await made.setGroup(pace, [...web, extra]);
  await revise(made, "bbb");
  await made.finish("a");
  await made.plan();
  await made.setGroup(pace, [...web, data, extra]);
  for (const cluster of ["b", "c"]) {
    await made.plan();
    await made.finish(cluster);
  }
  await made.plan();
  expect(made.stages()).toEqual({ all: "1 (2)" });
  expect((await made.sync("a", "web.data"))?.desired).toMatchObject({ action: "apply", rollout: 1 });
  expect((await made.sync("a", "web.extra"))?.desired).toMatchObject({ action: "apply", rollout: 2 });
});

test("a cluster for which the returning template is disabled does not get it back", async () => {
  const made = await dropped();
  const overrides = [{ clusters: { names: ["a"] }, disabled: true }];
  await made.setGroup(pace, [...web, { name: "data", source: "app", overrides }]);
  await playOn(made);
  expect(made.stages()).toEqual({ all: "3" });
  expect(await data(made, "a")).toBeUndefined();
  for (const name of ["b", "c"]) expect(await data(made, name)).toMatchObject({ action: "apply" });
});

test("a Sync in deletion is orphaned where its template returns as disabled for its cluster", async () => {
  const made = await dropped();
  const overrides = [{ clusters: { names: ["b"] }, disabled: true }];
  await made.setSource("ccc");
  await made.setGroup(pace, [...web, { ...both[1], overrides }]);
  await made.plan();
  expect(await data(made, "b")).toMatchObject({ action: "orphan" });
  expect(await data(made, "c")).toMatchObject({ action: "apply", revision: "main@sha1:aaa" });
  await playOn(made);
  expect(await data(made, "b")).toMatchObject({ action: "orphan" });
  expect(await app(made, "b")).toMatchObject({ revision: "main@sha1:ccc" });
  expect(made.stages()).toEqual({ all: "3" });
  expect(made.slots()).toEqual([]);
});
