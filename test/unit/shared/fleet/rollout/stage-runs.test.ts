import { describe, expect, test } from "vitest";
import {
  boundOf,
  changedSize,
  failuresOf,
  isStalled,
  isUnbegun,
  stageRunKey,
  superseded,
  waitingOf,
  withVerdict,
} from "#shared/fleet/rollout/stage-runs.ts";
import { stageRunInState } from "#test/support/rollout-state-rows.ts";

const strict = { maxConcurrent: "10%", maxFailures: 0, maxUnreachable: "10%" } as const;
const at = "2026-11-21T08:00:00.000Z";

test.each<[number | `${number}%`, number, number]>([
  ["10%", 9, 1],
  ["10%", 10, 1],
  ["10%", 19, 1],
  ["10%", 20, 2],
  [3, 2, 3],
  [0, 50, 1],
  ["100%", 0, 1],
  ["100%", 499, 499],
  ["100%", 10_000, 500],
  [900, 10_000, 500],
])("for a bound of %s of %i clusters, %i may be changing", (maxConcurrent, members, bound) => {
  expect(boundOf({ ...strict, maxConcurrent }, members)).toBe(bound);
});

test("the counts of a stage run yield its size, its waiting targets, its failures and whether it has begun", () => {
  const stageRun = stageRunInState({
    counts: { Waiting: 1, Rendering: 2, Failed: 3, Unchanged: 4, Skipped: 5 },
    preexistingFailures: 1,
  });
  expect([changedSize(stageRun), waitingOf(stageRun), failuresOf(stageRun)]).toEqual([6, 3, 2]);
  expect(isUnbegun(stageRun)).toBe(false);
  expect(isUnbegun(stageRunInState({ counts: { Waiting: 1, Rendering: 1, Unchanged: 1, Skipped: 1 } }))).toBe(true);
  for (const state of ["Assigned", "Succeeded", "Failed", "Unreachable"] as const)
    expect(isUnbegun(stageRunInState({ counts: { [state]: 1 } })), state).toBe(false);
  const phases = ["Updating", "Halted", "NothingVerified", "TooManyUnreachable", "Passed", "Superseded"] as const;
  expect(phases.filter((phase) => isStalled({ phase }))).toEqual(["Halted", "NothingVerified", "TooManyUnreachable"]);
  expect(stageRunKey({ rollout: 3, stage: "early", snapshot: 1 })).toBe("3#early#1");
});

describe("the transitions of a stage run", () => {
  test("each new phase is recorded once, and progress within a phase is not", () => {
    const stageRun = stageRunInState({ counts: { Waiting: 1 } });
    expect(withVerdict(stageRun, { phase: "Updating", reason: "Updating", message: "other words" }, at)).toBe(stageRun);
    const halt = { phase: "Halted", reason: "TooManyFailures", message: "1 failed" } as const;
    const halted = withVerdict(stageRun, halt, at);
    expect(halted).toMatchObject({ ...halt, transitions: [{ at, ...halt }] });
    expect(halted.endedAt).toBeUndefined();
    expect(withVerdict(halted, halt, "later")).toBe(halted);
    expect(withVerdict(halted, { ...halt, message: "2 failed" }, at).transitions).toHaveLength(2);
    expect(withVerdict(halted, { phase: "Passed", reason: "Passed", message: "" }, at).endedAt).toBe(at);
  });

  test("only the newest transitions are kept", () => {
    let stageRun = stageRunInState({ counts: { Waiting: 1 } });
    for (let turn = 0; turn < 50; turn++) {
      const phase = turn % 2 === 0 ? ("Halted" as const) : ("Updating" as const);
      stageRun = withVerdict(stageRun, { phase, reason: phase, message: `turn ${turn}` }, at);
    }
    expect(stageRun.transitions).toHaveLength(20);
    expect(stageRun.transitions.at(-1)?.message).toBe("turn 49");
  });

  test("a superseded stage run gives up its waiting targets, and keeps its results", () => {
    const counts = { Waiting: 1, Rendering: 2, Assigned: 3, Succeeded: 4, Failed: 5 };
    const stageRun = stageRunInState({
      counts,
      holds: [{ cause: "rendering", clusters: [1, 2] }],
      returned: [3],
      unrendered: [4],
    });
    const ended = superseded(stageRun, { by: 2 }, at);
    expect(ended).toMatchObject({
      phase: "Superseded",
      supersededBy: 2,
      endedAt: at,
      message: "rollout 2 replaced it",
      counts: { Waiting: 0, Rendering: 0, Assigned: 0, Superseded: 6, Succeeded: 4, Failed: 5 },
    });
    expect([ended.holds, ended.returned, ended.unrendered]).toEqual([[], [], []]);
  });

  test.each([
    ["another rollout", { by: 2 }, "Newer", "rollout 2 replaced it"],
    ["a new snapshot", { by: 1 }, "Newer", "a new snapshot replaced this stage run in all"],
    [
      "a refresh",
      { by: 1, refresh: { by: "ana", at, number: 3 } },
      "Newer",
      "a new snapshot replaced this stage run in all, because of a refresh by ana",
    ],
    ["the end of its stage", { by: undefined }, "StageRemoved", "its stage was removed"],
  ])("a stage run that is superseded by %s names the cause", (_what, cause, reason, message) => {
    expect(superseded(stageRunInState({}), cause, at)).toMatchObject({ phase: "Superseded", reason, message });
  });
});
