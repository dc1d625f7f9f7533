import { describe, expect, test } from "vitest";
import { catchUpPage } from "#functions/rollout/jobs/catch-up-page.ts";
import { listsIn } from "#functions/rollout/read/planner-ports.ts";
import { readOwner } from "#functions/rollout/read/read-owner.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { allSay, begin, names, playOn, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";

const none = { waiting: 0, changing: 0, failed: 0 };

describe("clusters that join before any rollout has passed", () => {
  test("clusters that join together become members of the stage run in progress", async () => {
    const made = await worldOf(["a"], { maxConcurrent: 1 });
    await begin(made);
    for (const name of ["x", "y", "z"]) await made.addCluster(name, "all");
    await playOn(made, 6);
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", size: 4, counts: { Succeeded: 4 } });
  });

  test("a cluster that left and returned stands in the stage run once, and the stage run's row stays as it is", async () => {
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

  test("a cluster joins the stage run in the step in which another one that did not answer leaves its stage", async () => {
    const made = await worldOf({ b: "canary", n: "rest" }, { ...rings, maxConcurrent: 2, maxUnreachable: "100%" });
    await made.addCluster("a", "canary");
    await begin(made);
    await made.observe("b", "Unreachable");
    await made.plan();
    expect(made.stageRun("canary").counts).toMatchObject({ Unreachable: 1, Assigned: 1 });
    await made.addCluster("b", "rest");
    await made.addCluster("n", "canary");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({
      size: 3,
      away: [],
      counts: { Unreachable: 0, Skipped: 1, Waiting: 0, Assigned: 2 },
    });
  });

  test("a cluster that joins a later stage waits until the stage run of that stage begins", async () => {
    const made = await worldOf({ c: "canary", r: "rest" }, { ...rings, maxConcurrent: 2 });
    await begin(made);
    await made.addCluster("new", "rest");
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ catchUps: none, stages: [{ members: 1 }, { members: 2 }] });
    await playOn(made, 4);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", size: 2 });
  });
});

test("a step takes as many clusters as fit into one transaction, and leaves the others to the next step", async () => {
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

test("a cluster that is registered anew under its name catches up after the stage run with its old registration has passed", async () => {
  const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
  await begin(made);
  await made.addCluster("b", "all", { uid: "another" });
  await playOn(made, 6);
  expect((await made.sync("b"))?.observed?.phase).toBe("Ready");
  expect(made.stages()).toEqual({ all: "1" });
});

describe("a cluster that joins, and then changes stage", () => {
  async function withJoined(): Promise<PlannerWorld> {
    const made = await worldOf({ c: "canary", r: "rest" }, { ...rings, maxConcurrent: 1 });
    await made.rollOut();
    await made.addCluster("new", "rest");
    return made;
  }

  test("a cluster that changes stage before its turn is counted once as waiting", async () => {
    const made = await withJoined();
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

  test("a cluster that failed to catch up gets another turn in its new stage, and counts as failed in neither stage", async () => {
    const made = await withJoined();
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

  test("a cluster that failed to catch up and is no longer selected counts as failed in no stage", async () => {
    const made = await withJoined();
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

describe("a stage run with more clusters than fit into one page of its list", { timeout: 60_000 }, () => {
  async function large(count: number): Promise<PlannerWorld> {
    const fleet = Array.from({ length: count }, (_, index) => `c${String(index).padStart(4, "0")}`);
    const made = await worldOf(fleet, { maxConcurrent: 2 });
    await begin(made);
    return made;
  }

  test("clusters of the second page, and a cluster that joins there, get their turns", async () => {
    const made = await large(1002);
    const stageRun = made.stageRun("all");
    expect(stageRun.pages.map(({ first }) => first)).toEqual([0, 1000]);
    // The others have had their turns.
    const counts = { ...stageRun.counts, Waiting: 2, Rendering: 0, Succeeded: 998 };
    const put: StageRunRow = { ...stageRun, next: 1000, holds: [], counts, version: stageRun.version + 1 };
    await made.table.write([{ put }]);
    await made.addCluster("d", "all");
    for (let round = 0; round < 4; round++) await allSay(made, "Ready");
    expect((await made.sync("c1001"))?.observed?.phase).toBe("Ready");
    expect((await made.sync("d"))?.observed?.phase).toBe("Ready");
    expect(made.stageRun("all")).toMatchObject({ phase: "Passed", size: 1003, pages: [{ first: 0 }, { first: 1000 }] });
  });

  test("a cluster that joins when the last page is full gets a new page", async () => {
    const made = await large(1000);
    await made.addCluster("d", "all");
    await made.plan();
    expect(made.stageRun("all")).toMatchObject({ size: 1001, pages: [{ first: 0 }, { first: 1000 }] });
  });
});
