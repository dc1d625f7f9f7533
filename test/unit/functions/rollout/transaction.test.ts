/** The rows that the planner keeps about many rollouts and clusters. */
import { expect, test } from "vitest";
import { readOwner } from "#functions/rollout/read/read-owner.ts";
import { startOver } from "#functions/rollout/write/another-turn.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import type { CatchUpRow } from "#shared/fleet/rows/rollout-rows.ts";
import { begin, names, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner } from "#test/support/planner-world.ts";

test("the rollout state keeps the newest rollouts, and those that a stage has or is updating to", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 2 });
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await begin(made);
  for (let commit = 3; commit <= 40; commit++) {
    await revise(made, `commit${commit}`);
    await made.finish("c1");
    await made.plan();
  }
  expect(made.stages()).toEqual({ canary: "40", rest: "1 (2)" });
  const newest = Array.from({ length: 10 }, (_, index) => 40 - index);
  expect(made.rolloutState().ledger.map(({ number }) => number)).toEqual([...newest, 2, 1]);
});

test("a stage run names the last ten unreachable clusters, and drops one that is reachable again", async () => {
  const made = await worldOf(names(12), { maxConcurrent: "100%", maxUnreachable: 0 });
  await begin(made);
  for (const name of names(12)) await made.finish(name, "Unreachable");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ counts: { Unreachable: 12 }, away: names(12).slice(2) });
  await made.observe("c005", "Reachable");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({
    counts: { Unreachable: 11, Assigned: 1 },
    away: names(12).filter((name) => name > "c001" && name !== "c005"),
  });
});

test("a stage run names the first ten failed clusters", async () => {
  const made = await worldOf(names(12), { maxConcurrent: "100%", maxFailures: 1 });
  await begin(made);
  for (const name of names(12)) await made.finish(name, "Failed");
  await made.plan();
  expect(made.stageRun("all").failures.map(({ cluster }) => cluster)).toEqual(names(12).slice(0, 10));
});

test("a target's row has its outcome, its times and its attempts", async () => {
  const made = await worldOf(["a", "b", "c", "d"], { maxConcurrent: 4, maxUnreachable: 1 });
  await made.rollOut();
  await made.observe("b", "Failed");
  const assignedAt = made.now.toISOString();
  await revise(made, "bbb");
  made.advanceClock(10);
  await made.finish("a");
  await made.observe("b", "Failed", { reason: "Invalid" });
  await made.finish("c", "Unreachable");
  await made.removeCluster("d");
  await made.plan();
  const endedAt = made.now.toISOString();
  const kept = { stageRun: { rollout: 2, stage: "all", snapshot: 2 }, attempts: { "web.app": 2 }, endedAt };
  expect(made.targets(2)).toMatchObject([
    { ...kept, cluster: "a", order: 0, state: "Succeeded", reason: "", assignedAt },
    { ...kept, cluster: "b", order: 1, state: "Failed", reason: "Invalid", preexisting: true, assignedAt },
    { ...kept, cluster: "c", order: 2, state: "Unreachable", reason: "Unreachable", assignedAt },
    { ...kept, cluster: "d", order: 3, state: "Skipped", reason: "no longer selected; its objects stay" },
  ]);
});

test("a failed target that leaves is skipped, and no longer counts as failed", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
  await made.rollOut();
  await made.observe("b", "Failed");
  await revise(made, "bbb");
  await made.finish("b", "Failed");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ preexistingFailures: 1, failures: [{ cluster: "b" }] });
  made.advanceClock(10);
  await made.removeCluster("b");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({
    ...{ preexistingFailures: 0, failures: [], returned: [] },
    counts: { Failed: 0, Skipped: 1, Assigned: 1 },
  });
  const [row] = made.targets(2);
  expect(row).toMatchObject({ cluster: "b", order: 1, state: "Skipped", endedAt: made.now.toISOString() });
  expect(row).not.toHaveProperty("preexisting");
});

test("a preexisting cluster that is unreachable and returns counts as no failure of its own", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1 });
  await made.rollOut();
  await made.observe("b", "Failed");
  await revise(made, "bbb");
  await made.finish("b", "Unreachable");
  await made.plan();
  expect(made.targets(2)).toMatchObject([{ cluster: "b", state: "Unreachable" }]);
  await made.observe("b", "Reachable");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ preexistingFailures: 0, counts: { Unreachable: 0, Assigned: 2 } });
});

test("a waiting catch-up that has to restore more is written once", async () => {
  const made = await worldOf(["a"], {});
  await made.rollOut();
  const known = await readOwner(owner, made);
  if (known === undefined) throw new Error("the group is gone");
  const before = new Transaction(known, made.now);
  before.putCatchUp("a", "waiting", { why: "joined" });
  before.putCatchUp("a", "away", { why: "returned", rollout: 1, stage: "all" });
  const restoring = new Transaction(await before.commit(made.table), made.now);
  const catchUps = made.rows<CatchUpRow>("CatchUp");
  restoring.see(catchUps);
  startOver(restoring, { catchUps, left: [] });
  restoring.putCatchUp("a", "waiting", { why: "returned", rollout: 2 });
  await restoring.commit(made.table);
  expect(made.rows("CatchUp")).toMatchObject([{ cluster: "a", why: "joined", rollout: 1, version: 2 }]);
  expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 0 });
});
