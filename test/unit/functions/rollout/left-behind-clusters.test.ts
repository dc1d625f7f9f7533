/**
 * A group that has passed without some of its clusters names them, with the time, the reason, and the command that
 * helps.
 */
import { expect, test } from "vitest";
import { allSay, begin, names, playOn, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const lax = { maxConcurrent: "100%", maxFailures: "100%", maxUnreachable: "100%" } as const;

async function passedWithout(said: "Failed" | "Unreachable", count: number): Promise<PlannerWorld> {
  const made = await worldOf(names(6), lax);
  await begin(made);
  for (const cluster of names(count)) await made.finish(cluster, said);
  await made.plan();
  await allSay(made, "Ready");
  // The index may lag for a while.
  made.advanceClock(60);
  await made.plan();
  expect(made.stages()).toEqual({ all: "1" });
  return made;
}

const message = async (made: PlannerWorld) => (await made.group()).status.conditions[0]?.message;

test("the message names an unreachable cluster, and the command to go on without it", async () => {
  const made = await passedWithout("Unreachable", 1);
  expect(await message(made)).toBe(
    "5 of 6 clusters ready; c000 does not answer (since 2026-11-21T08:00:00.000Z: Unreachable), and is given what it lacks when it does; to go on without: starling delete cluster/c000 --cascade=orphan",
  );
  const { version } = await made.group();
  await made.plan();
  expect((await made.group()).version).toBe(version);
  await made.observe("c000", "Reachable");
  await playOn(made);
  made.advanceClock(60);
  await made.plan();
  expect(await message(made)).toBe("6 of 6 clusters ready");
});

test("the message names the first of several unreachable clusters", async () => {
  const made = await passedWithout("Unreachable", 5);
  expect(await message(made)).toMatch(
    /^1 of 6 clusters ready; c000, c001, c002 and 2 more do not answer \(c000 since 2026-11-21T08:00:00.000Z: Unreachable\), .* cluster\/c000 /,
  );
});

test("the message names failed clusters, and the command that gives them another turn", async () => {
  const made = await passedWithout("Failed", 2);
  expect(await message(made)).toBe(
    "4 of 6 clusters ready; c000, c001 failed (c000 since 2026-11-21T08:00:00.000Z: Failed); to try again: starling reconcile syncgroup/web -n shop",
  );
});
