/** Renderings that failed for a reason that may not be their input, and the clusters that wait for them. */
import { describe, expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { allSay, ana, begin, ownPaths, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const struck = { message: "tried 5 times", retryAt: "2026-11-21T12:00:00.000Z" };
const ofA = (row: RenderingRow) => row.path === "clusters/a";

type Failure = Parameters<PlannerWorld["renderAll"]>[0];

async function asked(maxFailures: number): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures }, ownPaths);
  await made.plan();
  return made;
}

/** The rendering of `a` fails. */
async function failed(maxFailures: number, failure: Failure): Promise<PlannerWorld> {
  const made = await asked(maxFailures);
  await made.renderAll(failure, ofA);
  await made.renderAll();
  await made.plan();
  made.sender.take();
  return made;
}

async function reconcile(made: PlannerWorld): Promise<void> {
  made.advanceClock(5);
  await made.operate({ reconcile: ana(made.now) });
  await made.plan();
}

const renderingOfA = (made: PlannerWorld) => made.rows<RenderingRow>("Rendering").find(ofA);

describe("a stage run that has halted because of a rendering", () => {
  test("a reconcile asks once for the failed rendering", async () => {
    const made = await failed(0, struck);
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", unrendered: [0] });
    await reconcile(made);
    expect(made.stageRun("all").phase).toBe("Updating");
    expect(renderingOfA(made)).toMatchObject({ state: "Pending", tries: 0, waiting: [{ name: "web" }] });
    for (const gone of ["failure", "retryAt", "strikes"]) expect(renderingOfA(made)).not.toHaveProperty(gone);
    const requests = made.sender.take().filter((message) => message.to === "render");
    const source = { namespace: "shop", name: "app", revision: "main@sha1:aaa" };
    expect(requests).toEqual([{ to: "render", input: renderingOfA(made)?.input, notify: owner, source }]);

    await made.renderAll(struck);
    await made.plan();
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    expect(renderingOfA(made)).toMatchObject({ state: "Failed" });
  });

  test("a reconcile asks for the failed rendering although a refresh took a new snapshot before that", async () => {
    const made = await failed(0, struck);
    const at = made.now.toISOString();
    await made.setFreezes({ freezes: [{ name: "f", by: "ana", at, reason: "x" }] });
    await reconcile(made);
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    expect(renderingOfA(made)).toMatchObject({ state: "Failed" });
    await made.setFreezes({ freezes: [] });
    await made.plan();
    expect(renderingOfA(made)).toMatchObject({ state: "Pending" });
  });

  test("a later check asks again for a rendering whose row has expired", async () => {
    const made = await failed(0, struck);
    const row = renderingOfA(made);
    if (row === undefined) throw new Error("it was asked for");
    await made.table.write([{ delete: row }]);
    made.advanceClock(600);
    await made.plan();
    const asked = made.sender.take().filter((message) => message.to === "render");
    expect(asked).toMatchObject([{ input: row.input, notify: owner }]);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending", artifactDigest: row.artifactDigest, path: row.path });
    // The row expires 180 days from now, also when no renderer ever reports a result.
    expect(renderingOfA(made)?.expiresAt).toBe(made.now.getTime() / 1000 + 15_552_000);
    await made.plan();
    expect(made.sender.take().filter((message) => message.to === "render")).toEqual([]);
    await made.renderAll();
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Updating");
  });

  test("the planner does not ask again by itself for a rendering whose input is wrong", async () => {
    const made = await failed(0, "no kind");
    made.advanceClock(90_000);
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    expect(renderingOfA(made)).toMatchObject({ state: "Failed", failure: { message: "no kind" } });
    expect(made.sender.take().filter((message) => message.to === "render")).toEqual([]);
  });

  test("a reconcile asks again for a rendering that failed, and the stage run goes on when it succeeds", async () => {
    const made = await failed(0, "no kind");
    await reconcile(made);
    const requests = made.sender.take().filter((message) => message.to === "render");
    expect(requests).toMatchObject([{ input: renderingOfA(made)?.input, notify: owner }]);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending", tries: 0 });
    await made.renderAll();
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Updating");
    await made.rollOut();
    expect(made.states()).toMatchObject({ a: "Succeeded" });
  });

  test("the stage run goes on by itself when the rendering is retried and succeeds", async () => {
    const made = await failed(0, struck);
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    await made.renderRested();
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Updating");
    await made.rollOut();
    expect(made.states()).toMatchObject({ a: "Succeeded" });
  });

  test("the stage run goes on within its budget, without the clusters that have no rendering", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 3, maxFailures: 1 }, ownPaths);
    await made.plan();
    await made.renderAll(struck, ofA);
    await made.renderAll("no kind", ({ path }) => path === "clusters/b");
    await made.renderAll();
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", unrendered: [0, 1] });
    await made.renderRested();
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", unrendered: [1], failures: [{ cluster: "b" }] });
    await made.rollOut();
    made.advanceClock(60);
    await made.plan();
    expect((await made.group()).status.clusters).toMatchObject({ selected: 3, ready: 2, failed: 1 });
  });

  test("the stage run stays halted when a cluster failed, although the rendering succeeded", async () => {
    const made = await asked(0);
    await made.renderAll(undefined, (row) => !ofA(row));
    await made.plan();
    await made.renderAll(struck);
    await made.plan();
    await made.finish("b", "Failed");
    await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Failed" });
    await made.renderRested();
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ phase: "Halted", counts: { Failed: 1 } });
    expect(await made.sync("a")).toBeUndefined();
  });

  test("the stage run assigns nothing while the group is suspended", async () => {
    const made = await failed(0, struck);
    await made.operate({ suspended: ana(made.now) });
    await made.renderRested();
    await made.plan();
    expect(await made.sync("a")).toBeUndefined();
    expect((await made.group()).status.state).toBe("Suspended");
  });

  test("the stage run assigns nothing after the failed rendering, also within one step", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, ownPaths);
    await made.plan();
    await made.renderAll("no kind", ofA);
    await made.renderAll();
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    expect(await made.sync("b")).toBeUndefined();
  });
});

describe("a stage that passed although a rendering failed", () => {
  async function passed(failure: Failure): Promise<PlannerWorld> {
    const made = await failed(1, failure);
    await made.finish("b");
    await made.plan();
    expect(made.stages()).toEqual({ all: "1" });
    expect((await made.group()).status.clusters).toMatchObject({ ready: 1, failed: 1 });
    return made;
  }

  test("the cluster catches up when its rendering is retried and succeeds", async () => {
    const made = await passed(struck);
    await made.renderRested();
    await made.plan();
    await made.rollOut();
    made.advanceClock(60);
    await made.plan();
    expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
    expect((await made.group()).status).toMatchObject({ clusters: { ready: 2, failed: 0 } });
  });

  test("the planner reads the awaited rendering after a renderer's message, and not after a worker's report", async () => {
    const made = await passed(struck);
    const read: string[] = [];
    const table: Table = {
      ...countedTable(made.table).table,
      getMany(desired, reading) {
        read.push(...desired.flatMap((key) => keys.rendering.parse(key)?.input ?? []));
        return made.table.getMany(desired, reading);
      },
    };
    await made.plan(table, ["b"]);
    expect(read).toEqual([]);
    await made.plan(table, []);
    expect(read).toEqual([renderingOfA(made)?.input]);
  });

  test("a reconcile asks for the failed rendering, and for no other", async () => {
    const made = await passed(struck);
    await reconcile(made);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending" });
    const other = made.rows<RenderingRow>("Rendering").filter((row) => !ofA(row));
    expect(other).toMatchObject([{ state: "Done", version: 2 }]);
    await made.renderAll();
    await made.rollOut();
    expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
  });

  test("a reconcile also asks once for a rendering whose input was wrong", async () => {
    const made = await passed("no kind");
    await reconcile(made);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending" });
    await made.renderAll("no kind");
    for (let check = 0; check < 3; check++) await made.plan();
    expect(renderingOfA(made)).toMatchObject({ state: "Failed" });
    expect(made.rollouts()).toHaveLength(1);
  });
});

describe("a cluster that joined and whose rendering failed", () => {
  async function joined(failure: Failure): Promise<PlannerWorld> {
    const made = await worldOf(["b"], { maxConcurrent: 2 }, ownPaths);
    await made.rollOut();
    await made.addCluster("a", "all");
    await made.plan();
    await made.renderAll(failure);
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ catchUps: { failed: 1 }, stages: [{ failedCatchUps: 0 }] });
    return made;
  }

  test("the cluster catches up when its rendering is retried and succeeds", async () => {
    const made = await joined(struck);
    await made.renderRested();
    await made.rollOut();
    expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
  });

  test("a reconcile asks for the failed rendering of the cluster", async () => {
    const made = await joined(struck);
    await reconcile(made);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending" });
    await made.renderAll();
    await made.rollOut();
    expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
  });

  test("an idle check changes nothing when the input itself is wrong", async () => {
    const made = await joined("no kind");
    const { version } = made.rolloutState();
    await made.plan();
    expect(made.rolloutState().version).toBe(version);
  });

  test("a cluster that moved and is ahead of its new stage is not tried again at each check", async () => {
    const byRing = [{ name: "app", source: "app", path: "rings/{{ cluster.labels.ring }}" }];
    const fleet = { c1: "canary", c2: "canary", r1: "rest", r2: "rest" };
    const made = await worldOf(fleet, { ...rings, maxConcurrent: 4 }, byRing);
    await made.rollOut();
    await revise(made, "bbb");
    await allSay(made, "Ready");
    await begin(made);
    await made.setSource("ccc");
    await begin(made);
    for (const cluster of ["c1", "c2"]) await made.finish(cluster);
    await made.plan();
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (2)" });
    await made.addCluster("c2", "rest");
    await made.plan();
    await made.renderAll("no such path", ({ artifactDigest }) => artifactDigest === digestOf("ccc"));
    await made.plan();
    const { catchUps, version } = made.rolloutState();
    expect(catchUps.failed).toBe(1);
    await made.plan();
    expect(made.rolloutState().version).toBe(version);
  });
});
