/** The time at which the planner checks a group again when no report about it comes. */
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

  test("an idle check clears the count of the tick's dispatches, and changes nothing else", async () => {
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
      "has lost its due time",
      (made: PlannerWorld) => made.table.update({ update: keys.rolloutState(owner), remove: ["dueKey", "dueShard"] }),
    ],
  ])("an idle group that %s becomes due at a later time", async (_what, act) => {
    const made = await idle();
    await act(made);
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
  });

  test("a group that waits for its Source is checked as rarely as an idle one", async () => {
    const made = new PlannerWorld();
    await made.addCluster("a", "all");
    await made.setGroup({});
    await made.plan();
    expect((await made.group()).status.state).toBe("Waiting");
    made.advanceClock(30);
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeGreaterThan(500);
  });

  test("a group is checked soon while a reconcile is not answered", async () => {
    const made = await idle();
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    expect(backoffSecondsAfter(made)).toBeLessThan(70);
  });
});

describe("the deadline of a group", () => {
  test("the group's deadline is that of the slot that ends first, and there is none without slots", async () => {
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

  test("the group has no deadline while no worker has begun, however long ago it was assigned", async () => {
    const made = await worldOf(["a"], { progressDeadline: "60s" });
    await begin(made);
    made.advanceClock(3600);
    await made.plan();
    expect(made.rolloutState()).not.toHaveProperty("deadline");
    expect(backoffSecondsAfter(made)).toBe(30);
  });

  test("a call for one worker's report finds the deadline again after a resume", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "20s" });
    await begin(made);
    await made.observe("a", "Applying");
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    await made.operate({ resumed: ana(made.now) });
    await made.plan(made.table, ["a"]);
    expect(dueAt(made)).toBe(later(made.now, 20));
  });

  test("the planner is due at the deadline also when the call ends right after it gave the slot", async () => {
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

describe("a template that is removed", () => {
  const both = [...web, { name: "old", source: "app" }];

  test("the group remembers a removed template until no cluster has a Sync of it", async () => {
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

  test("the group does not forget a removed template before the index has had time to follow", async () => {
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

test("a freeze that has ended does not make the group due", async () => {
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
