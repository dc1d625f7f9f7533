import { describe, expect, test } from "vitest";
import { catchUpPage } from "#functions/rollout/catch-up-page.ts";
import { listsIn } from "#functions/rollout/lists.ts";
import { readOwner } from "#functions/rollout/read-owner.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { allSay, begin, names, playOn, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";

const none = { waiting: 0, changing: 0, failed: 0 };

describe("where nothing has passed yet", () => {
  test("those that come together go with the leg, all of them", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 1 });
    await begin(made);
    for (const name of ["x", "y", "z"]) await made.addCluster(name, "all");
    await playOn(made, 6);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", size: 4, counts: { Succeeded: 4 } });
  });

  test("one that left and is there again is in the leg once, which stays as it is", async () => {
    const made = await worldOf(names(12), { maxConcurrent: 1 }, web, { selector: { matchLabels: { ring: "all" } } });
    await begin(made);
    await made.addCluster("c011", "none");
    await made.plan();
    const { version, pages } = made.stageRun("all");
    await made.addCluster("c011", "all");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ version, pages, size: 12 });
    await playOn(made, 13);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 12 } });
  });

  test("one that comes to a stage that nothing goes through waits for it", async () => {
    const made = await worldOf({ c: "canary", r: "rest" }, { ...rings, maxConcurrent: 2 });
    await begin(made);
    await made.addCluster("new", "rest");
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ catchUps: none, stages: [{ members: 1 }, { members: 2 }] });
    await playOn(made, 4);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", size: 2 });
  });
});

test("who does not fit into a step any more has the next", async () => {
  const made = await worldOf(names(3), { maxConcurrent: 1 });
  await made.rollOut();
  const known = await readOwner(owner, made);
  if (known === undefined) throw new Error("the group is there");
  const transaction = new Transaction(known, made.now);
  while (transaction.room() > 5) transaction.write({ check: keys.fleet("c000"), when: "absent" });
  const done = await catchUpPage(transaction, names(3), {
    ...{ table: made.table, blobs: made.blobs, sender: made.sender, ids: randomIds, log: silentLog },
    ...{ clock: { now: () => made.now }, lists: listsIn(made.blobs), installation: "test" },
  });
  expect({ done, room: transaction.room() }).toEqual({ done: 2, room: 3 });
});

test("who is registered anew under its name comes when what it was sealed for has passed", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
  await begin(made);
  await made.addCluster("b", "all", { uid: "another" });
  await playOn(made, 6);
  expect((await made.sync("b"))?.observed?.phase).toBe("Ready");
  expect(made.stages()).toEqual({ all: "1" });
});

describe("a cluster that came, and moves on", () => {
  async function came(): Promise<PlannerWorld> {
    const made = await worldOf({ c: "canary", r: "rest" }, { ...rings, maxConcurrent: 1 });
    await made.rollOut();
    await made.addCluster("new", "rest");
    return made;
  }

  test("before its turn waits once", async () => {
    const made = await came();
    await made.addCluster("old", "rest");
    await made.plan();
    expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 1, failed: 0 });
    await made.addCluster("old", "canary");
    await made.plan();
    expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 1, failed: 0 });
    await playOn(made, 4);
    expect(made.rolloutState().catchUps).toEqual(none);
    for (const name of ["new", "old"]) expect((await made.sync(name))?.observed?.phase, name).toBe("Ready");
  });

  test("after it failed has another turn where it is then, and has failed nowhere", async () => {
    const made = await came();
    await made.plan();
    await allSay(made, "Failed");
    expect(made.rolloutState().stages).toMatchObject([{ failedCatchUps: 0 }, { failedCatchUps: 1 }]);
    await made.addCluster("new", "canary");
    await begin(made);
    expect(made.rolloutState()).toMatchObject({
      catchUps: { failed: 0 },
      stages: [{ failedCatchUps: 0 }, { failedCatchUps: 0 }],
    });
    expect((await made.sync("new"))?.desired.attempt).toBe(2);
  });

  test("after it failed, and is selected no more, has failed nowhere", async () => {
    const made = await came();
    await made.plan();
    await allSay(made, "Failed");
    await made.setGroup({ ...rings, maxConcurrent: 1 }, web, { names: ["c", "r"] });
    await made.plan();
    expect(made.rolloutState()).toMatchObject({
      catchUps: none,
      stages: [{ failedCatchUps: 0 }, { failedCatchUps: 0 }],
    });
  });
});

describe("a leg of more clusters than its lists have pages for", { timeout: 60_000 }, () => {
  async function large(count: number): Promise<PlannerWorld> {
    const fleet = Array.from({ length: count }, (_, index) => `c${String(index).padStart(4, "0")}`);
    const made = await worldOf(fleet, { maxConcurrent: 2 });
    await begin(made);
    return made;
  }

  test("is given to those of its second page, too, and to who joins there", async () => {
    const made = await large(1002);
    const stageRun = made.stageRun("all");
    expect(stageRun.pages.map(({ first }) => first)).toEqual([0, 1000]);
    // The others have had their turns.
    const counts = { ...stageRun.counts, Waiting: 2, Rendering: 0, Succeeded: 998 };
    const put: StageRunRow = { ...stageRun, next: 1000, rendering: [], counts, version: stageRun.version + 1 };
    await made.table.write([{ put }]);
    await made.addCluster("d", "all");
    for (let round = 0; round < 4; round++) await allSay(made, "Ready");
    expect((await made.sync("c1001"))?.observed?.phase).toBe("Ready");
    expect((await made.sync("d"))?.observed?.phase).toBe("Ready");
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", size: 1003, pages: [{ first: 0 }, { first: 1000 }] });
  });

  test("has a page of its own for who joins when the last is full", async () => {
    const made = await large(1000);
    await made.addCluster("d", "all");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ size: 1001, pages: [{ first: 0 }, { first: 1000 }] });
  });
});
