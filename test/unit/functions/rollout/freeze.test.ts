import { beforeEach, describe, expect, test } from "vitest";
import type { BrakeRow, Freeze } from "#shared/fleet/rows/brake-row.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";

const later = (made: PlannerWorld, seconds: number) => new Date(made.now.getTime() + seconds * 1000).toISOString();

async function brake(made: PlannerWorld, row: Partial<Pick<BrakeRow, "freezes" | "lifted">>): Promise<void> {
  const put: BrakeRow = {
    ...keys.brake,
    type: "Brake",
    schema: rowSchema,
    version: 1,
    freezes: [],
    lifted: [],
    ...row,
  };
  await made.table.write([{ put }]);
}

function freezeAt(made: PlannerWorld, more: Partial<Freeze> = {}): Freeze {
  return { name: "inc-4711", by: "ana", at: made.now.toISOString(), reason: "INC-4711", ...more };
}

const prod = { text: "env=prod", selector: { matchLabels: { env: "prod" } } };
const why = "frozen by ana (INC-4711); starling thaw inc-4711";

describe("a rollout under a freeze", () => {
  let made: PlannerWorld;

  beforeEach(async () => {
    made = new PlannerWorld();
    await made.addCluster("a1", "all", { labels: { env: "dev" } });
    await made.addCluster("p1", "all", { labels: { env: "prod" } });
    await made.addCluster("p2", "all", { labels: { env: "prod" } });
    await made.setSource("aaa");
    await made.setGroup({ maxConcurrent: 3, progressDeadline: "60s" });
    await made.plan();
    await made.renderAll();
  });

  const states = () => Object.fromEntries(made.targets().map(({ cluster, state }) => [cluster, state]));

  test("of every cluster assigns nothing, says so by name, and goes on by itself after the thaw", async () => {
    await brake(made, { freezes: [freezeAt(made)] });
    await made.plan();
    made.advanceClock(600);
    await made.plan();
    expect(await made.sync("a1")).toBeUndefined();
    expect(made.newest()).toMatchObject({ phase: "Running", reason: "Frozen", message: `stage all waits: ${why}` });
    expect((await made.group()).status).toMatchObject({
      state: "Frozen",
      conditions: [{ message: `stage all waits: ${why}` }],
    });
    await brake(made, {});
    await made.rollOut();
    expect(made.newest().phase).toBe("Complete");
  });

  test("of every cluster costs no look at the targets that wait", async () => {
    let pages = 0;
    const { table } = made;
    const counting: Table = {
      ...refusingWrites(table, () => undefined),
      query(query) {
        if (query.between !== undefined) pages++;
        return table.query(query);
      },
    };
    await brake(made, { freezes: [freezeAt(made, { clusters: prod })] });
    await made.plan(counting);
    expect(pages).toBeGreaterThan(0);
    pages = 0;
    await brake(made, { freezes: [freezeAt(made)] });
    await made.plan(counting);
    expect(pages).toBe(0);
  });

  test("of some assigns to the others, and looks again when the freeze ends", async () => {
    const until = later(made, 20);
    await brake(made, { freezes: [freezeAt(made, { clusters: prod, until })] });
    await made.plan();
    expect(states()).toEqual({ a1: "Assigned", p1: "Waiting", p2: "Waiting" });
    expect(made.targets().find(({ cluster }) => cluster === "p1")?.reason).toContain("starling thaw inc-4711");
    await made.observe("a1", "Ready");
    await made.plan();
    expect(made.newest()).toMatchObject({ reason: "Frozen" });
    expect(dueAtOf(made.newest().dueKey ?? "")).toBe(until);
    made.advanceClock(21);
    await made.plan();
    expect(states()).toEqual({ a1: "Succeeded", p1: "Assigned", p2: "Assigned" });
    expect(made.newest().reason).toBe("StageStarted");
    expect(made.targets().every(({ frozen }) => frozen === undefined)).toBe(true);
  });

  test("spends no deadline of what was begun before", async () => {
    await made.plan();
    expect(states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
    made.advanceClock(30);
    await brake(made, { freezes: [freezeAt(made)] });
    made.advanceClock(120);
    await made.plan();
    expect(states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
    await brake(made, { lifted: [{ ...freezeAt(made), lifted: { by: "bo", at: made.now.toISOString() } }] });
    made.advanceClock(59);
    await made.plan();
    expect(states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
    made.advanceClock(2);
    await made.plan();
    expect(made.newest()).toMatchObject({ phase: "Halted", reason: "TooManyFailures" });
  });

  test("that came and went between two looks spends none either", async () => {
    await made.plan();
    made.advanceClock(10);
    const freeze = freezeAt(made);
    made.advanceClock(45);
    await brake(made, { lifted: [{ ...freeze, lifted: { by: "bo", at: made.now.toISOString() } }] });
    made.advanceClock(30);
    await made.plan();
    expect(states()).toEqual({ a1: "Assigned", p1: "Assigned", p2: "Assigned" });
  });

  test("spends nothing of the time of a cluster that the rollout before left changing", async () => {
    made = new PlannerWorld();
    await made.addCluster("a", "all", { labels: { env: "dev" } });
    await made.addCluster("b", "all", { labels: { env: "prod" } });
    await made.setSource("aaa");
    await made.setGroup({ maxConcurrent: 1, progressDeadline: "60s" });
    await made.plan();
    await made.renderAll();
    await made.plan();
    await made.observe("a", "Ready");
    await made.plan();
    await made.observe("b", "Applying");
    await made.setSource("bbb");
    await made.plan();
    const freeze = freezeAt(made, { clusters: prod });
    await brake(made, { freezes: [freeze] });
    await made.plan();
    made.advanceClock(600);
    await made.plan();
    await made.renderAll();
    await made.plan();
    const attemptOfA = (await made.sync("a"))?.desired.attempt;
    await brake(made, { lifted: [{ ...freeze, lifted: { by: "bo", at: made.now.toISOString() } }] });
    await made.plan();
    // It takes the new revision in the slot that it has, and no other cluster changes beside it.
    expect(await made.sync("b")).toMatchObject({ desired: { attempt: 2 } });
    expect((await made.sync("a"))?.desired.attempt).toBe(attemptOfA);
  });

  test("that cannot be read assigns nothing", async () => {
    await made.table.write([{ put: { ...keys.brake, type: "Brake", schema: rowSchema, version: 1 } }]);
    await expect(made.plan()).rejects.toThrow("the freezes cannot be read");
    expect(await made.sync("a1")).toBeUndefined();
  });
});
