import { describe, test } from "vitest";
import { tellBusyDay } from "#test/support/busy-day.ts";
import { startWorld } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";

/** It takes longer than any other: `npm run nightly -- busy` plays it, too. */
const long = process.env.STARLING_E2E_LONG !== undefined;

describe.runIf(long).each(fleetTargets)("on $name", (target) => {
  test("people, pushes and groups that cross each other end as git wants it", { timeout: 1_800_000 }, async () => {
    const world = await startWorld({ target, tickEveryMs: 1000, pollMs: 250 });
    try {
      await tellBusyDay(world, { patienceSeconds: 600 });
    } finally {
      await world.close();
    }
  });
});
