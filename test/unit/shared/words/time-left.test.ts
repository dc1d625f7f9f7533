import { expect, test } from "vitest";
import { refOf } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { timeLeft } from "#shared/words/time-left.ts";
import { leg, now, overview } from "#test/unit/cli/format/overview-fixture.ts";

type Counts = Partial<Record<TargetState, number>>;

/** Canary has passed 119 in 60 s; early goes through it since 120 s; rest is still to come. */
function left(early: Counts, change: Partial<LegRow> = {}): string | undefined {
  const passed = leg(119, "canary", {
    counts: { Succeeded: 2 },
    phase: "Passed",
    startedAt: "2026-11-20T08:03:00.000Z",
    endedAt: "2026-11-20T08:04:00.000Z",
  });
  const moving = leg(119, "early", { counts: early, startedAt: "2026-11-20T08:05:00.000Z", ...change });
  const stage = { changing: 0, failedArrivals: 0 };
  return timeLeft(
    overview({
      legs: [passed, moving],
      stages: [
        { name: "canary", members: 2, on: 119, passed: refOf(passed), ...stage },
        { name: "early", members: moving.size, on: 118, moving: refOf(moving), ...stage },
        { name: "rest", members: 10, on: 118, ...stage },
      ],
    }),
    now,
  );
}

test("as fast as those of its stage that are done; of stages to come nothing is foretold", () => {
  // 120 s for 4 clusters, and 6 are left.
  expect(left({ Succeeded: 3, Unchanged: 1, Waiting: 5, Assigned: 1 })).toBe(
    "about 3m left in early, by the 4 clusters that are done there",
  );
});

test("nothing is foretold from fewer than three", () => {
  expect(left({ Waiting: 8 })).toBeUndefined();
});

test("nor while a stage stands still", () => {
  expect(left({ Succeeded: 4, Failed: 1, Waiting: 3 }, { phase: "Halted" })).toBeUndefined();
});
