/** Renderings that failed for a reason that may not be the input's: what becomes of those who wanted them. */
import { describe, expect, test } from "vitest";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { PlannerWorld, subject } from "#test/support/planner-world.ts";

const struck = { message: "tried 5 times", restsUntil: "2026-11-21T12:00:00.000Z" };
const ofA = (row: RenderingRow) => row.path === "clusters/a";

async function asked(maxFailures: number): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  for (const name of ["a", "b"]) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({ maxConcurrent: 2, maxFailures }, [
    { name: "app", source: "app", path: "clusters/{{ cluster.name }}" },
  ]);
  await made.plan();
  return made;
}

type Failure = Parameters<PlannerWorld["renderAll"]>[0];

/** `a` cannot be rendered for. */
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
  await made.operate({ reconcile: { by: "ana", at: made.now.toISOString() } });
  await made.plan();
}

function renderingOfA(made: PlannerWorld): RenderingRow | undefined {
  return made.rows<RenderingRow>("Rendering").find(ofA);
}

describe("a halted rollout", () => {
  test("asks by a reconcile for what rests, once", async () => {
    const made = await failed(0, struck);
    expect(made.newest()).toMatchObject({ number: 1, phase: "Halted", unassigned: ["a"] });
    await reconcile(made);
    expect(made.newest()).toMatchObject({ number: 2, phase: "Running", trigger: "reconcile" });
    expect(renderingOfA(made)).toMatchObject({ state: "Pending", tries: 0, waiting: [{ name: "web" }] });
    for (const gone of ["failure", "restsUntil", "strikes"]) expect(renderingOfA(made)).not.toHaveProperty(gone);
    const asked = made.sender.take().filter((message) => message.to === "render");
    const source = { namespace: "shop", name: "app" };
    expect(asked).toEqual([{ to: "render", input: renderingOfA(made)?.input, notify: subject, source }]);

    await made.renderAll(struck);
    await made.plan();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Halted" });
    expect(renderingOfA(made)).toMatchObject({ state: "Failed" });
  });

  test("asks nothing again that the input itself is wrong about", async () => {
    const made = await failed(0, "no kind");
    await reconcile(made);
    expect(made.newest()).toMatchObject({ number: 2, phase: "Halted" });
    expect(renderingOfA(made)).toMatchObject({ state: "Failed", failure: { message: "no kind" } });
  });

  test("goes on by itself when what rested has been rendered", async () => {
    const made = await failed(0, struck);
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 1, phase: "Halted" });
    await made.renderRested();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Running" });
    await made.rollOut();
    expect(made.states()).toMatchObject({ a: "Succeeded" });
  });

  test("stays halted when a cluster failed, whatever has been rendered", async () => {
    const made = await asked(0);
    await made.renderAll(undefined, (row) => !ofA(row));
    await made.plan();
    await made.renderAll(struck);
    await made.plan();
    await made.observe("b", "Failed");
    await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Failed" });
    await made.renderRested();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 1, phase: "Halted" });
  });

  test("stays halted while the group is suspended", async () => {
    const made = await failed(0, struck);
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await made.renderRested();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 1, phase: "Halted" });
  });
});

describe("a rollout that bore the failure", () => {
  async function complete(failure: Failure): Promise<PlannerWorld> {
    const made = await failed(1, failure);
    await made.observe("b", "Ready");
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 1, phase: "Complete" });
    expect((await made.group()).status.clusters).toMatchObject({ ready: 1, failed: 1 });
    return made;
  }

  test("brings the cluster up when what rested has been rendered", async () => {
    const made = await complete(struck);
    await made.renderRested();
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, size: 1 });
    await made.rollOut();
    await made.plan();
    expect((await made.head())?.unassigned).toEqual([]);
    expect((await made.group()).status).toMatchObject({ clusters: { ready: 2, failed: 0 } });
  });

  test("asks by a reconcile for what rests, and for nothing else", async () => {
    const made = await complete(struck);
    await reconcile(made);
    expect(renderingOfA(made)).toMatchObject({ state: "Pending" });
    const other = made.rows<RenderingRow>("Rendering").filter((row) => !ofA(row));
    expect(other).toMatchObject([{ state: "Done", version: 2 }]);
    await made.renderAll();
    await made.rollOut();
    expect(made.newest()).toMatchObject({ number: 2, size: 1, phase: "Complete" });
  });

  test("leaves alone what the input itself is wrong about", async () => {
    const made = await complete("no kind");
    await reconcile(made);
    expect(renderingOfA(made)).toMatchObject({ state: "Failed" });
    expect(made.rollouts()).toHaveLength(1);
  });
});
