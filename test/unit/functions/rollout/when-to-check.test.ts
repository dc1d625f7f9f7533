/** When a subject that nobody says anything of is looked at again. */
import { describe, expect, test } from "vitest";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { FreezesRow } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, ownPaths, web, worldOf } from "#test/support/planner-story.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

const dueAt = (made: PlannerWorld) => dueAtOf(made.rolloutState().dueKey ?? "");
const backoffSecondsAfter = (made: PlannerWorld) => (new Date(dueAt(made)).getTime() - made.now.getTime()) / 1000;

describe("a group that has nothing to do", () => {
  async function idle(): Promise<PlannerWorld> {
    const made = await worldOf(["a"], {});
    await made.rollOut();
    made.advanceClock(60);
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
    return made;
  }

  test("is looked at once each time, however often the tick has asked before", async () => {
    const made = await idle();
    const before = made.rolloutState();
    await made.plan();
    expect(made.rolloutState()).toEqual(before);
    await made.table.update({ update: keys.rolloutState(owner), set: { dispatches: 3 } });
    await made.plan();
    expect(made.rolloutState()).not.toHaveProperty("dispatches");
  });

  test.each([
    ["was due", (made: PlannerWorld) => made.advanceClock(700)],
    [
      "has lost its time",
      (made: PlannerWorld) => made.table.update({ update: keys.rolloutState(owner), remove: ["dueKey", "dueShard"] }),
    ],
  ])("and %s, is due later again", async (_what, act) => {
    const made = await idle();
    await act(made);
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
  });

  test("for it waits for its Source, is looked at as seldom", async () => {
    const made = new PlannerWorld();
    await made.addCluster("a", "all");
    await made.setGroup({});
    await made.plan();
    expect((await made.group()).status.state).toBe("Waiting");
    made.advanceClock(30);
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
  });

  test("is looked at soon while a reconcile is not answered", async () => {
    const made = await idle();
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeLessThan(70);
  });
});

describe("the deadline of a group", () => {
  test("is that of the first slot to use its up, and none when nobody has one", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "60s" });
    await begin(made);
    expect(made.rolloutState().deadline).toBe(later(made.now, 60));
    await made.observe("b", "Applying");
    const first = later(made.now, 60);
    made.advanceClock(10);
    await made.observe("a", "Applying");
    await made.plan();
    expect(made.rolloutState().deadline).toBe(first);
    await made.plan(made.table, ["a"]);
    expect(made.rolloutState().deadline).toBe(first);
    for (const name of ["a", "b"]) await made.finish(name);
    await made.plan();
    expect(made.rolloutState()).not.toHaveProperty("deadline");
  });

  test("is none where no worker has begun, however long ago it could have", async () => {
    const made = await worldOf(["a"], { progressDeadline: "60s" });
    await begin(made);
    made.advanceClock(3600);
    await made.plan();
    expect(made.rolloutState()).not.toHaveProperty("deadline");
    expect(backoffSecondsAfter(made)).toBe(30);
  });

  test("is known after a resume from what one worker says", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "20s" });
    await begin(made);
    await made.observe("a", "Applying");
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    await made.operate({ resumed: ana(made.now) });
    await made.plan(made.table, ["a"]);
    expect(dueAt(made)).toBe(later(made.now, 20));
  });

  test("is looked at in time, also when the call ends right after the slot was given", async () => {
    const made = await worldOf(["a"], { progressDeadline: "20s" });
    await made.plan();
    await made.renderAll();
    const given = made.now;
    const { table } = made;
    const write = table.write.bind(table);
    table.write = async (writes) => {
      await write(writes);
      if (writes.some((one) => "put" in one && one.put.type === "Slot")) made.advanceClock(60);
    };
    made.sender.take();
    await made.plan();
    expect(made.sender.take()).toContainEqual({ to: "rollout", owner, clusters: [] });
    expect(dueAt(made)).toBe(later(given, 20));
  });
});

describe("a template that is gone", () => {
  const both = [...web, { name: "old", source: "app" }];

  test("is remembered until it is seen that nobody has anything of it", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1 }, both);
    await made.rollOut();
    await made.setGroup({ maxConcurrent: 2, maxUnreachable: 1 }, web);
    await begin(made);
    await made.finish("a");
    await made.finish("b", "Unreachable");
    await made.plan();
    expect(made.stages()).toEqual({ all: "2" });
    made.advanceClock(60);
    await made.plan();
    expect(made.rolloutState().templates).toEqual(["app", "old"]);
    await made.observe("b", "Reachable", { name: "web.old" });
    await made.plan();
    await made.finish("b");
    await made.plan();
    made.advanceClock(60);
    await made.plan();
    expect(made.rolloutState().templates).toEqual(["app"]);
  });

  test("is not forgotten before an index has had time", async () => {
    const made = await worldOf(["a"], {}, both);
    await made.rollOut();
    await made.setGroup({}, web);
    await begin(made);
    await made.finish("a");
    await made.plan();
    made.advanceClock(29);
    await made.plan();
    expect(made.rolloutState().templates).toEqual(["app", "old"]);
    made.advanceClock(1);
    await made.plan();
    expect(made.rolloutState().templates).toEqual(["app"]);
  });
});

test("a freeze that has ended is no reason to look", async () => {
  const made = await worldOf(["a"], { progressDeadline: "10m" }, ownPaths);
  const until = later(made.now, 20);
  const freeze = { name: "inc", by: "ana", at: made.now.toISOString(), reason: "INC", until };
  const put: FreezesRow = {
    ...{ ...keys.freezeState, type: "Freezes", schema: rowSchema, version: 1 },
    ...{ freezes: [freeze], lifted: [] },
  };
  await made.table.write([{ put }]);
  await begin(made);
  expect(dueAt(made)).toBe(until);
  made.advanceClock(21);
  await begin(made);
  expect(backoffSecondsAfter(made)).toBe(30);
});
