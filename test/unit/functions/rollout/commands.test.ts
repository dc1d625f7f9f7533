/** The effect of each command on a group that has a cluster in every state. */
import { beforeEach, describe, expect, test } from "vitest";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { ana, begin, ownPaths, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { OperationsInput, PlannerWorld } from "#test/support/planner-world.ts";

const group = { ...rings, maxConcurrent: 20, maxFailures: 5, maxUnreachable: 5, progressDeadline: "60s" } as const;
/** The clusters are named after the state that they get. */
const clusters = ["applying", "assigned", "failed", "rendering", "succeeded", "unchanged", "unreachable", "verifying"];

/** Rollout 2 goes through the stage rest, which has one cluster in each state; the cluster that waits has no slot. */
async function inEveryState(): Promise<PlannerWorld> {
  const made = await worldOf(
    { canary: "canary", ...Object.fromEntries(clusters.map((name) => [name, "rest"])) },
    group,
    ownPaths,
  );
  await made.rollOut();
  const ofUnchanged = (path: string) => path === "clusters/unchanged";
  const same = made.rows<RenderingRow>("Rendering");
  const digest = same.find((row) => ofUnchanged(row.path))?.digest ?? "";
  await made.setSource("bbb");
  await made.plan();
  await made.renderAll();
  await made.plan();
  await made.finish("canary");
  await made.plan();
  for (const row of made.rows<RenderingRow>("Rendering")) {
    if (row.state !== "Pending" || row.path === "clusters/rendering") continue;
    const done: RenderingRow = {
      ...row,
      state: "Done" as const,
      doneAt: made.now.toISOString(),
      digest: ofUnchanged(row.path) ? digest : `sha256:${row.path}-2`,
      version: row.version + 1,
    };
    await made.table.write([{ put: done }]);
  }
  await made.plan();
  await made.observe("applying", "Applying");
  await made.observe("verifying", "Verifying");
  await made.finish("failed", "Failed");
  await made.finish("succeeded");
  await made.finish("unreachable", "Unreachable");
  await made.plan();
  expect(made.stageRun("rest")).toMatchObject({
    phase: "Updating",
    counts: { Assigned: 3, Rendering: 1, Succeeded: 1, Unchanged: 1, Failed: 1, Unreachable: 1 },
  });
  return made;
}

const act = (made: PlannerWorld, verb: keyof OperationsInput, more: object = {}) =>
  made.operate({ [verb]: { ...ana(made.now), ...more } } as OperationsInput);

/** Cluster -> the action, revision and attempt that it was assigned last, and whether it has a slot. */
async function standing(made: PlannerWorld) {
  const slots = new Set(made.slots().map(({ cluster }) => cluster));
  const entries = await Promise.all(
    clusters.map(async (name) => {
      const { desired } = (await made.sync(name)) ?? {};
      const revision = desired?.revision.slice(-3);
      return [name, `${desired?.action} ${revision} ${desired?.attempt}${slots.has(name) ? " slot" : ""}`] as const;
    }),
  );
  return Object.fromEntries(entries);
}

const before = {
  applying: "apply bbb 2 slot",
  assigned: "apply bbb 2 slot",
  failed: "apply bbb 2",
  rendering: "apply aaa 1",
  succeeded: "apply bbb 2",
  unchanged: "apply aaa 1",
  unreachable: "apply bbb 2",
  verifying: "apply bbb 2 slot",
};

describe("a group with a cluster in every state", () => {
  let made: PlannerWorld;

  beforeEach(async () => {
    made = await inEveryState();
    expect(await standing(made)).toEqual(before);
  });

  test("a suspended group assigns nothing and keeps its slots, whatever else happens", async () => {
    await act(made, "suspended");
    await made.renderAll();
    await made.observe("unreachable", "Reachable");
    await revise(made, "ccc");
    made.advanceClock(3600);
    await made.plan();
    expect(await standing(made)).toEqual(before);
    expect(made.stageRun("rest").counts).toMatchObject({ Failed: 1, Assigned: 3, Unreachable: 0 });
  });

  test("a resumed group assigns what waited, and deadlines begin anew", async () => {
    await act(made, "suspended");
    await made.plan();
    await made.renderAll();
    await made.observe("unreachable", "Reachable");
    made.advanceClock(3600);
    await act(made, "resumed");
    await made.plan();
    expect(await standing(made)).toEqual({ ...before, rendering: "apply bbb 2 slot", unreachable: "apply bbb 3 slot" });
    made.advanceClock(60);
    await made.plan();
    // An attempt that no worker began has no deadline.
    expect(made.stageRun("rest").counts).toMatchObject({ Failed: 3, Assigned: 3 });
  });

  test("a reconcile gives failed clusters another turn, and attempts in progress go on", async () => {
    await act(made, "reconcile");
    await made.plan();
    expect(await standing(made)).toEqual({ ...before, failed: "apply bbb 3 slot" });
    for (const name of clusters) expect((await made.sync(name))?.reconcile, name).toBeGreaterThan(0);
  });

  test("a refresh keeps attempts in progress and passed clusters, and gives failed clusters another turn", async () => {
    await act(made, "refresh");
    await made.plan();
    expect(await standing(made)).toEqual({ ...before, failed: "apply bbb 3 slot", unreachable: "apply bbb 3 slot" });
    const stageRun = made.stageRun("rest");
    expect(stageRun.counts).toMatchObject({ Assigned: 5, Succeeded: 1, Unchanged: 1, Rendering: 1 });
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  });

  test("clusters that are no longer selected are forgotten, and their objects stay", async () => {
    await made.setGroup(group, ownPaths, { names: ["canary"] });
    await made.plan();
    for (const name of clusters) expect((await made.sync(name))?.desired.action, name).toBe("orphan");
    expect(made.slots()).toEqual([]);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect((await made.group()).status.clusters).toMatchObject({ selected: 1 });
  });

  test("a deletion starts on every cluster at once, also where an attempt is in progress", async () => {
    await act(made, "deletion", { cascade: "delete" });
    await made.plan();
    await made.finish("canary");
    await made.plan();
    const after = await standing(made);
    for (const [name, what] of Object.entries(after)) expect(what, name).toMatch(/^delete /);
  });

  test("a change of the failure budget counts at once, and assigns nothing by itself", async () => {
    await made.setGroup({ ...group, maxFailures: 0 }, ownPaths);
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("Halted");
    await made.renderAll();
    await made.plan();
    expect(await standing(made)).toEqual(before);
    await made.setGroup({ ...group, maxFailures: 1 }, ownPaths);
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("Updating");
    expect(await standing(made)).toEqual({ ...before, rendering: "apply bbb 2 slot" });
  });

  test("a longer deadline holds for attempts in progress", async () => {
    await made.setGroup({ ...group, progressDeadline: "10m" }, ownPaths);
    made.advanceClock(61);
    await made.plan();
    expect(made.stageRun("rest").counts).toMatchObject({ Failed: 1, Assigned: 3 });
  });

  test("changed stages leave the stage run in progress as it was", async () => {
    const stages = [{ name: "first", clusters: { names: ["nobody"] } }, ...rings.stages];
    await made.setGroup({ ...group, stages }, ownPaths);
    await made.plan();
    expect(await standing(made)).toEqual(before);
    expect(made.stages()).toEqual({ first: "2", canary: "2", rest: "1 (2)" });
  });

  test("a newer rollout waits for the stage run in progress, and then goes to every cluster", async () => {
    await made.setSource("ccc");
    await made.plan();
    expect(await standing(made)).toEqual(before);
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    await made.renderAll();
    await begin(made);
    await made.rollOut();
    const after = await standing(made);
    for (const name of clusters.filter((one) => one !== "unreachable")) expect(after[name], name).toMatch(/^apply ccc/);
  });
});
