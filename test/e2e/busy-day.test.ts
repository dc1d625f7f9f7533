import { describe, test } from "vitest";
import { everyday } from "#local/aws/wire/fault-options.ts";
import { playBusyDay } from "#test/support/busy-day.ts";
import { startWorld } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";

/** The pages of queries are small, so that code that reads only the first page misses clusters in every pass. */
const faults = { ...everyday, dynamodb: { ...everyday.dynamodb, shortPage: 1 } };

describe.each(storyTargets)("on $name", (target) => {
  test("clusters end as git describes them after a day on which people, pushes and groups interfere with each other", {
    timeout: 900_000,
  }, async () => {
    const world = await startWorld({ target, faults, tickEveryMs: 1000, pollMs: 250 });
    try {
      await playBusyDay(world, { patienceSeconds: 300 });
    } finally {
      await world.close();
    }
  });
});
