import { beforeEach, describe, expect, test } from "vitest";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

const rings = {
  stages: [{ name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } }, { name: "rest" }],
};

async function world(clusters: Readonly<Record<string, string>>): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  for (const [name, ring] of Object.entries(clusters)) await made.addCluster(name, ring);
  await made.setSource("aaa");
  return made;
}

describe("a first rollout", () => {
  let made: PlannerWorld;
  beforeEach(async () => {
    made = await world({ c1: "canary", r1: "rest", r2: "rest", r3: "rest" });
    await made.setGroup({ ...rings, maxConcurrent: 2 });
  });

  test("the planner asks for the rendering once, and assigns nothing before it is done", async () => {
    await made.plan();
    await made.plan();
    expect(made.stageRun("canary").counts).toMatchObject({ Rendering: 1, Waiting: 0 });
    expect(made.states()).toEqual({});
    expect(made.rows("Rendering")).toHaveLength(1);
    expect(await made.sync("c1")).toBeUndefined();
  });

  test("the planner asks to be notified of a rendering that another owner asked for", async () => {
    await made.plan();
    const [row] = made.rows<RenderingRow>("Rendering");
    if (row === undefined) throw new Error("no rendering was asked for");
    const source = { namespace: "shop", name: "app", revision: "main@sha1:aaa" };
    const message = { to: "render", input: row.input, notify: owner, source } as const;
    expect(made.sender.take()).toContainEqual(message);
    await made.plan();
    expect(made.sender.take()).toEqual([]);

    const elsewhere: RenderingRow = { ...row, waiting: [{ namespace: "shop", kind: "Sync", name: "other" }] };
    await made.table.write([{ put: elsewhere }]);
    await made.plan();
    expect(made.sender.take()).toEqual([message]);
  });

  test("the rollout goes stage by stage, within maxConcurrent", async () => {
    await made.plan();
    await made.renderAll();
    await made.plan();
    expect(made.states()).toEqual({ c1: "Assigned" });
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    await made.observe("c1", "Verifying");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Assigned" });
    await made.observe("c1", "Ready");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1", rest: "- (1)" });
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Assigned" });
    await made.observe("r1", "Ready");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Succeeded", r2: "Assigned" });
    await made.observe("r2", "Ready");
    await made.plan();
    await made.observe("r3", "Ready");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", message: "stage rest passed: 3 succeeded" });
    expect((await made.group()).status).toMatchObject({
      state: "Complete",
      revision: "main@sha1:aaa",
      clusters: { selected: 4, ready: 4, changing: 0, failed: 0 },
      conditions: [{ type: "Ready", status: "True" }],
    });
  });

  test("a second call without news changes nothing", async () => {
    await made.plan();
    await made.renderAll();
    await made.plan();
    const before = JSON.stringify(made.table.all());
    await made.plan();
    expect(JSON.stringify(made.table.all())).toBe(before);
  });

  test("an observation of another attempt is ignored", async () => {
    await made.plan();
    await made.renderAll();
    await made.plan();
    await made.observe("c1", "Ready", { attempt: 7 });
    await made.plan();
    expect(made.states().c1).toBe("Assigned");
  });

  test("a rendering that fails halts the first stage with the reason", async () => {
    await made.plan();
    await made.renderAll("deploy/app.yaml: document 2: no kind");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ phase: "Halted" });
    expect(made.stageRun("canary").message).toContain("deploy/app.yaml: document 2: no kind");
    expect(await made.sync("r1")).toBeUndefined();
  });
});

describe("a rollout that halts or goes on", () => {
  let made: PlannerWorld;
  beforeEach(async () => {
    made = await world({ c1: "canary", r1: "rest", r2: "rest" });
    await made.setGroup({ ...rings, maxConcurrent: 2, progressDeadline: "60s" });
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll();
    await made.plan();
  });

  test("a target fails at its deadline, and more failures than the budget halt the stage run", async () => {
    await made.observe("c1", "Verifying", { reason: "NotReady" });
    await made.plan();
    made.advanceClock(61);
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ rollout: 2, phase: "Halted", reason: "TooManyFailures" });
    expect(made.stageRun("canary").message).toContain("DeadlineExceeded: NotReady");
    expect(made.states()).toEqual({ c1: "Failed" });
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
  });

  test("a newer revision takes over from a halted rollout, whose stage run is Superseded", async () => {
    await made.observe("c1", "Failed");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Halted");
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.stageRuns().map(({ rollout, stage, phase }) => [rollout, stage, phase])).toEqual([
      [1, "canary", "Passed"],
      [1, "rest", "Passed"],
      [2, "canary", "Superseded"],
      [3, "canary", "Passed"],
      [3, "rest", "Passed"],
    ]);
    expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:ccc");
  });

  test("a cluster that a halted rollout broke counts against the budget of the next rollout", async () => {
    await made.observe("c1", "Failed");
    await made.plan();
    await made.setSource("ccc");
    await made.plan();
    await made.renderAll();
    await made.plan();
    await made.observe("c1", "Failed");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ rollout: 3, phase: "Halted" });
    expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:aaa");
  });

  test("clusters that still run the earlier revision are Unchanged when the source goes back to it", async () => {
    await made.observe("c1", "Failed");
    await made.plan();
    await made.setSource("aaa");
    await made.plan();
    await made.plan();
    expect(made.states()).toEqual({ c1: "Assigned" });
    await made.observe("c1", "Ready");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Unchanged", r2: "Unchanged" });
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  });

  test("no deadline runs while the group is suspended, and the deadline starts anew after the resume", async () => {
    await made.observe("c1", "Applying");
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await made.plan();
    made.advanceClock(3600);
    await made.plan();
    expect(made.states().c1).toBe("Assigned");
    expect((await made.group()).status.state).toBe("Suspended");
    await made.operate({ resumed: { by: "ana", at: made.now.toISOString() } });
    await made.plan();
    expect(made.states().c1).toBe("Assigned");
    made.advanceClock(61);
    await made.plan();
    expect(made.states().c1).toBe("Failed");
  });

  test("unreachable clusters hold no slot, and return in their turn", async () => {
    await made.setGroup({ ...rings, maxConcurrent: 1, maxUnreachable: 1 });
    await made.observe("c1", "Ready");
    await made.plan();
    await made.observe("r1", "Unreachable");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Unreachable", r2: "Assigned" });
    await made.observe("r1", "Reachable");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", r2: "Assigned" });
    await made.observe("r2", "Ready");
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("Updating");
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Assigned", r2: "Succeeded" });
    await made.observe("r1", "Ready");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded", r1: "Succeeded", r2: "Succeeded" });
    expect(made.stageRun("rest").phase).toBe("Passed");
  });
});

describe("a group whose rollout is complete", () => {
  let made: PlannerWorld;
  beforeEach(async () => {
    made = await world({ c1: "canary", r1: "rest" });
    await made.setGroup({ ...rings, maxUnreachable: 1 });
    await made.rollOut();
  });

  test("a commit that does not change the artifact starts no rollout", async () => {
    await made.setSource("bbb", "aaa");
    await made.plan();
    expect(made.rollouts()).toHaveLength(1);
  });

  test("a cluster that joins is assigned the current rollout, and no other cluster is touched", async () => {
    await made.addCluster("r2", "rest");
    await made.rollOut();
    expect(made.rollouts()).toHaveLength(1);
    expect((await made.sync("r1"))?.desired.attempt).toBe(1);
    expect((await made.group()).status.clusters).toMatchObject({ selected: 3, ready: 3 });
  });

  test("a cluster that leaves is forgotten, and is assigned again when it returns", async () => {
    await made.removeCluster("r1");
    await made.rollOut();
    expect((await made.sync("r1"))?.desired).toMatchObject({ action: "orphan", attempt: 2 });
    await made.addCluster("r1", "rest");
    await made.rollOut();
    expect((await made.sync("r1"))?.desired).toMatchObject({ action: "apply", attempt: 3 });
  });

  test("a template that is removed is deleted from its clusters", async () => {
    await made.setGroup(rings, [{ name: "other", source: "app" }]);
    await made.plan();
    await made.renderAll();
    await made.plan();
    expect((await made.sync("c1", "web.app"))?.desired.action).toBe("delete");
    expect((await made.sync("c1", "web.other"))?.desired.action).toBe("apply");
  });

  test("a deleted group is deleted from every cluster, and then its row is deleted", async () => {
    await made.operate({ deletion: { by: "ana", at: made.now.toISOString(), cascade: "delete" } });
    for (let round = 0; round < 6; round++) {
      await made.plan();
      for (const { cluster } of made.slots()) await made.observe(cluster, "Gone");
    }
    expect(made.rollouts().at(-1)).toMatchObject({ trigger: "deletion" });
    expect(made.rows("SyncOnCluster")).toEqual([]);
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("an orphaning deletion touches no cluster", async () => {
    await made.operate({ deletion: { by: "ana", at: made.now.toISOString(), cascade: "orphan" } });
    made.sender.take();
    for (let round = 0; round < 6; round++) await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.sender.take().filter((message) => message.to === "apply")).toEqual([]);
  });

  test("a reconcile wakes every cluster once", async () => {
    await made.operate({ reconcile: { by: "ana", at: made.now.toISOString() } });
    made.sender.take();
    await made.plan();
    await made.plan();
    expect(made.sender.take().filter((message) => message.to === "apply")).toHaveLength(2);
    expect((await made.sync("c1"))?.reconcile).toBe(1);
  });
});
