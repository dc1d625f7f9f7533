/** A window that admits few clusters a night, with a new commit every day: nobody stays behind for ever. */
import { expect, test } from "vitest";
import { allSay, begin, names, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const fleet = names(10);
const hour = 3600;

/**
 * A commit comes while the window is closed. Then it is open for an hour, in which attempts end after 20 minutes each,
 * one after the other.
 */
async function dayAndNight(made: PlannerWorld, day: number, failing: readonly string[] = []): Promise<void> {
  made.advanceClock(22 * hour);
  await revise(made, String(day));
  made.advanceClock(hour);
  for (let turn = 0; turn < 3; turn++) {
    await begin(made);
    const [slot] = made.slots();
    made.advanceClock(hour / 3);
    await allSay(made, failing.includes(slot?.cluster ?? "") ? "Failed" : "Ready");
  }
}

/** The day of each cluster's commit. */
async function days(made: PlannerWorld): Promise<readonly number[]> {
  const syncs = await Promise.all(fleet.map((cluster) => made.sync(cluster)));
  return syncs.map((sync) => Number(sync?.desired.revision.slice("main@sha1:".length)));
}

/** Everybody has the commit of day 0, and the window has just closed. */
async function firstNight(): Promise<PlannerWorld> {
  const made = await worldOf(fleet, { maxConcurrent: 1, maxFailures: 1, progressDeadline: "30m" });
  await made.setSource("0");
  await made.rollOut();
  const allow = [{ cron: "0 7 * * *", duration: "1h", timeZone: "UTC" }];
  const spec = { clusters: { all: true }, allow };
  const documents = [{ apiVersion: "starling.dev/v1alpha1", kind: "Window", metadata: { name: "night" }, spec }];
  const api = apiFixture(made.table);
  expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 200 });
  return made;
}

test("each night, the clusters with the oldest commits have their turn", async () => {
  const made = await firstNight();
  for (let day = 1; day <= 8; day++) {
    await dayAndNight(made, day);
    const has = await days(made);
    expect(
      has.filter((one) => one === day),
      `day ${day}`,
    ).toHaveLength(3);
    if (day >= 4) expect(day - Math.min(...has), `day ${day}`).toBeLessThan(4);
  }
});

test("a cluster that failed has its turn first in the next night", async () => {
  const made = await firstNight();
  await dayAndNight(made, 1, ["c001"]);
  made.advanceClock(22 * hour);
  await revise(made, "2");
  made.advanceClock(hour);
  await begin(made);
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c001"]);
});
