import { describe, expect, test } from "vitest";
import {
  boundOf,
  changedSize,
  failuresOf,
  isStalled,
  isUnbegun,
  stageRunKey,
  superseded,
  verdictOf,
  waitingOf,
  withOutcome,
  withVerdict,
} from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { stageRunInState } from "#test/support/rollout-state-rows.ts";

const strict = { maxConcurrent: "10%", maxFailures: 0, maxUnreachable: "10%" } as const;
const generous = { maxConcurrent: "10%", maxFailures: "100%", maxUnreachable: "100%" } as const;
const at = "2026-11-21T08:00:00.000Z";

type StageRun = Parameters<typeof stageRunInState>[0];
const emptySnapshot: StageRun = {};
const allReady: StageRun = { counts: { Succeeded: 2 } };
const allUnchanged: StageRun = { counts: { Unchanged: 2 } };
const allGone: StageRun = { counts: { Skipped: 2 } };
const allUnreachable: StageRun = { counts: { Unreachable: 2 } };
const allFailed: StageRun = { counts: { Failed: 2 } };
const allPreexisting: StageRun = { counts: { Failed: 2 }, preexistingFailures: 2 };

describe.each(["canary", "rest"])("a leg through %s, first or last", (stage) => {
  test.each<[string, StageRun, StageRunPhase, StageRunPhase]>([
    ["sealed empty", emptySnapshot, "Passed", "Passed"],
    ["all ready", allReady, "Passed", "Passed"],
    ["all unchanged", allUnchanged, "Passed", "Passed"],
    ["all gone", allGone, "NothingVerified", "NothingVerified"],
    ["one gone, and one unchanged", { counts: { Skipped: 1, Unchanged: 1 } }, "NothingVerified", "NothingVerified"],
    ["one gone, and one ready", { counts: { Skipped: 1, Succeeded: 1 } }, "Passed", "Passed"],
    ["all unreachable", allUnreachable, "TooManyUnreachable", "NothingVerified"],
    ["all failed", allFailed, "Halted", "NothingVerified"],
    ["all failed, and not ready before", allPreexisting, "NothingVerified", "NothingVerified"],
    [
      "one not ready before, and one unchanged",
      { counts: { Failed: 1, Unchanged: 1 }, preexistingFailures: 1 },
      "NothingVerified",
      "NothingVerified",
    ],
    [
      "one not ready before, and one ready",
      { counts: { Failed: 1, Succeeded: 1 }, preexistingFailures: 1 },
      "Passed",
      "Passed",
    ],
    ["one gone, and one unreachable", { counts: { Skipped: 1, Unreachable: 1 } }, "NothingVerified", "NothingVerified"],
  ])("%s: with strict and with generous budgets", (_name, stageRun, withStrict, withGenerous) => {
    expect(verdictOf(stageRunInState({ stage, ...stageRun }), strict).phase).toBe(withStrict);
    expect(verdictOf(stageRunInState({ stage, ...stageRun }), generous).phase).toBe(withGenerous);
  });

  test("goes on while anybody waits, is rendered for, or has a slot", () => {
    for (const state of ["Waiting", "Rendering", "Assigned"] as const)
      expect(verdictOf(stageRunInState({ stage, counts: { Succeeded: 3, [state]: 1 } }), strict).phase, state).toBe(
        "Updating",
      );
  });
});

describe("the budget of failures", () => {
  test.each<[string, number | `${number}%`, StageRun, StageRunPhase]>([
    ["halts at once, whoever waits", 0, { counts: { Failed: 1, Waiting: 5 } }, "Halted"],
    ["bears what it allows", 1, { counts: { Failed: 1, Succeeded: 1 } }, "Passed"],
    ["and not one more", 1, { counts: { Failed: 2, Succeeded: 1 } }, "Halted"],
    ["rounds down", "10%", { counts: { Failed: 2, Succeeded: 17 } }, "Halted"],
    ["at the very share it bears", "10%", { counts: { Failed: 2, Succeeded: 18 } }, "Passed"],
    [
      "is of what may change, less what is Unchanged",
      "10%",
      { counts: { Failed: 1, Succeeded: 8, Unchanged: 91 } },
      "Halted",
    ],
    ["less what is gone", "10%", { counts: { Failed: 1, Succeeded: 8, Skipped: 1 } }, "Halted"],
    ["of a single changed target is none", "99%", { counts: { Failed: 1, Unchanged: 99 } }, "Halted"],
    [
      "does not count who was not ready before",
      0,
      { counts: { Failed: 1, Succeeded: 1 }, preexistingFailures: 1 },
      "Passed",
    ],
  ])("%s", (_name, maxFailures, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), { ...strict, maxFailures }).phase).toBe(phase);
  });

  test("says how many, of how many, where, and why the first did", () => {
    const failures = [
      { cluster: "a", reason: "Invalid" },
      { cluster: "b", reason: "NotReady" },
    ];
    const stageRun = stageRunInState({ stage: "early", counts: { Failed: 2, Waiting: 4, Unchanged: 3 }, failures });
    const message = "2 clusters failed of 6 in stage early (allows 0): a: Invalid";
    expect(verdictOf(stageRun, strict)).toEqual({ phase: "Halted", reason: "TooManyFailures", message });
  });
});

test("a failure that does not count never takes the place of the first one that does", () => {
  const failed = (cluster: string, preexisting?: true) => ({
    cluster,
    state: "Failed" as const,
    reason: "R",
    preexisting,
  });
  let stageRun = stageRunInState({ stage: "early", counts: { Failed: 3, Waiting: 1 } });
  for (const one of [failed("sick1", true), failed("bad"), failed("sick2", true)])
    stageRun = withOutcome(stageRun, one);
  expect(stageRun.failures.map(({ cluster }) => cluster)).toEqual(["bad", "sick1", "sick2"]);
  expect(verdictOf(stageRun, strict).message).toBe("1 cluster failed of 4 in stage early (allows 0): bad: R");
});

describe("the budget of those that do not answer", () => {
  test.each<[string, number | `${number}%`, StageRun, StageRunPhase]>([
    ["rounds up", "10%", { counts: { Unreachable: 1, Succeeded: 1 } }, "Passed"],
    ["and bears not one more", "10%", { counts: { Unreachable: 2, Succeeded: 8 } }, "TooManyUnreachable"],
    ["is judged when the leg ends", 0, { counts: { Unreachable: 5, Waiting: 1 } }, "Updating"],
    ["of none is none", "0%", { counts: { Unreachable: 1, Succeeded: 9 } }, "TooManyUnreachable"],
    [
      "is less what is Unchanged",
      "10%",
      { counts: { Unreachable: 2, Succeeded: 1, Unchanged: 97 } },
      "TooManyUnreachable",
    ],
  ])("%s", (_name, maxUnreachable, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), { ...strict, maxUnreachable }).phase).toBe(phase);
  });
});

describe("a leg that deletes", () => {
  test.each<[string, StageRun, StageRunPhase]>([
    ["needs no evidence", allGone, "Passed"],
    ["leaves nobody behind", { counts: { Succeeded: 9, Unreachable: 1 } }, "TooManyUnreachable"],
    ["bears no failure", { counts: { Succeeded: 9, Failed: 1 } }, "Halted"],
    ["goes on with the others all the same", { counts: { Waiting: 1, Failed: 1 } }, "Updating"],
  ])("%s, whatever the budgets", (_name, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), generous, { deletion: true }).phase).toBe(phase);
  });

  test("says that deleting failed", () => {
    expect(verdictOf(stageRunInState({ counts: { Failed: 1 } }), strict, { deletion: true }).reason).toBe(
      "DeletionFailed",
    );
  });
});

test.each<[string, StageRun, string]>([
  ["all unreachable", allUnreachable, "nothing verified in stage all: 2 Unreachable"],
  ["all not ready before", allPreexisting, "nothing verified in stage all: 2 Failed, 2 of them not ready before"],
  ["both", { counts: { Unreachable: 1, Failed: 1 } }, "nothing verified in stage all: 1 Unreachable, 1 Failed"],
  ["sealed empty", emptySnapshot, "stage all is empty: passed at once"],
  ["passed", { counts: { Succeeded: 2, Skipped: 1, Unreachable: 0 } }, "stage all passed: 2 succeeded, 1 skipped"],
])("of a leg %s is said why it stands where it does", (_name, stageRun, message) => {
  expect(verdictOf(stageRunInState(stageRun), generous).message).toBe(message);
});

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
])("of %s of %i clusters %i may be changing", (maxConcurrent, members, bound) => {
  expect(boundOf({ ...strict, maxConcurrent }, members)).toBe(bound);
});

test("what it counts", () => {
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

describe("what is told of a leg", () => {
  test("is told once, and how it moves is nothing new", () => {
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

  test("goes on after many transitions, of which the last are kept", () => {
    let stageRun = stageRunInState({ counts: { Waiting: 1 } });
    for (let turn = 0; turn < 50; turn++) {
      const phase = turn % 2 === 0 ? ("Halted" as const) : ("Updating" as const);
      stageRun = withVerdict(stageRun, { phase, reason: phase, message: `turn ${turn}` }, at);
    }
    expect(stageRun.transitions).toHaveLength(20);
    expect(stageRun.transitions.at(-1)?.message).toBe("turn 49");
  });

  test("that another took the place of: nobody has a turn any more, and what is done stays", () => {
    const counts = { Waiting: 1, Rendering: 2, Assigned: 3, Succeeded: 4, Failed: 5 };
    const stageRun = stageRunInState({ counts, rendering: [1], aside: [2], returned: [3], unrendered: [4] });
    const ended = superseded(stageRun, 2, at);
    expect(ended).toMatchObject({
      phase: "Superseded",
      supersededBy: 2,
      endedAt: at,
      message: "rollout 2 replaced it",
      counts: { Waiting: 0, Rendering: 0, Assigned: 0, Superseded: 6, Succeeded: 4, Failed: 5 },
    });
    expect([ended.rendering, ended.aside, ended.returned, ended.unrendered]).toEqual([[], [], [], []]);
    expect(superseded(stageRun, 1, at).message).toBe("a new snapshot was taken");
  });
});
