import { expect, test } from "vitest";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { timeLeft } from "#shared/words/time-left.ts";
import { now, overview, stageRun } from "#test/unit/cli/format/overview-fixture.ts";

type Counts = Partial<Record<TargetState, number>>;

/** Canary has passed 119 in 60 s; early has been updating to it for 120 s; rest has not started. */
function left(early: Counts, change: Partial<StageRunRow> = {}): string | undefined {
  const passed = stageRun(119, "canary", {
    counts: { Succeeded: 2 },
    phase: "Passed",
    startedAt: "2026-11-20T08:03:00.000Z",
    endedAt: "2026-11-20T08:04:00.000Z",
  });
  const updatingTo = stageRun(119, "early", { counts: early, startedAt: "2026-11-20T08:05:00.000Z", ...change });
  const stage = { changing: 0, failedCatchUps: 0 };
  return timeLeft(
    overview({
      stageRuns: [passed, updatingTo],
      stages: [
        { name: "canary", members: 2, current: 119, passed: refOf(passed), ...stage },
        { name: "early", members: updatingTo.size, current: 118, updatingTo: refOf(updatingTo), ...stage },
        { name: "rest", members: 10, current: 118, ...stage },
      ],
    }),
    now,
  );
}

test("the time left is estimated from the finished clusters of the same stage", () => {
  // 120 s for 4 clusters, and 6 are left.
  expect(left({ Succeeded: 3, Unchanged: 1, Waiting: 5, Assigned: 1 })).toBe(
    "about 3m left in early, estimated from the 4 clusters that are done",
  );
});

test("the time left is not estimated from fewer than three clusters", () => {
  expect(left({ Waiting: 8 })).toBeUndefined();
});

test("the time left is not estimated while a stage is halted", () => {
  expect(left({ Succeeded: 4, Failed: 1, Waiting: 3 }, { phase: "Halted" })).toBeUndefined();
});
