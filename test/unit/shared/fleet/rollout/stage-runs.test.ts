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

describe.each(["canary", "rest"])("a stage run in %s, the first stage or the last", (stage) => {
  test.each<[string, StageRun, StageRunPhase, StageRunPhase]>([
    ["an empty snapshot", emptySnapshot, "Passed", "Passed"],
    ["all ready", allReady, "Passed", "Passed"],
    ["all unchanged", allUnchanged, "Passed", "Passed"],
    ["all skipped", allGone, "NothingVerified", "NothingVerified"],
    ["one skipped, and one unchanged", { counts: { Skipped: 1, Unchanged: 1 } }, "NothingVerified", "NothingVerified"],
    ["one skipped, and one ready", { counts: { Skipped: 1, Succeeded: 1 } }, "Passed", "Passed"],
    ["all unreachable", allUnreachable, "TooManyUnreachable", "NothingVerified"],
    ["all failed", allFailed, "Halted", "NothingVerified"],
    ["all failed, and all preexisting", allPreexisting, "NothingVerified", "NothingVerified"],
    [
      "one preexisting failure, and one unchanged",
      { counts: { Failed: 1, Unchanged: 1 }, preexistingFailures: 1 },
      "NothingVerified",
      "NothingVerified",
    ],
    [
      "one preexisting failure, and one ready",
      { counts: { Failed: 1, Succeeded: 1 }, preexistingFailures: 1 },
      "Passed",
      "Passed",
    ],
    [
      "one skipped, and one unreachable",
      { counts: { Skipped: 1, Unreachable: 1 } },
      "NothingVerified",
      "NothingVerified",
    ],
  ])(
    "a stage run with %s is judged with strict budgets as %s and with generous ones as %s",
    (_name, stageRun, withStrict, withGenerous) => {
      expect(verdictOf(stageRunInState({ stage, ...stageRun }), strict).phase).toBe(withStrict);
      expect(verdictOf(stageRunInState({ stage, ...stageRun }), generous).phase).toBe(withGenerous);
    },
  );

  test("a stage run continues while a target waits, is rendered for, or has a slot", () => {
    for (const state of ["Waiting", "Rendering", "Assigned"] as const)
      expect(verdictOf(stageRunInState({ stage, counts: { Succeeded: 3, [state]: 1 } }), strict).phase, state).toBe(
        "Updating",
      );
  });
});

describe("the budget of failures", () => {
  test.each<[string, number | `${number}%`, StageRun, StageRunPhase]>([
    ["halts at once, although targets wait", 0, { counts: { Failed: 1, Waiting: 5 } }, "Halted"],
    ["allows as many failures as it says", 1, { counts: { Failed: 1, Succeeded: 1 } }, "Passed"],
    ["does not allow one more", 1, { counts: { Failed: 2, Succeeded: 1 } }, "Halted"],
    ["rounds down", "10%", { counts: { Failed: 2, Succeeded: 17 } }, "Halted"],
    ["allows exactly its share", "10%", { counts: { Failed: 2, Succeeded: 18 } }, "Passed"],
    [
      "is a share of the changing targets, without the Unchanged ones",
      "10%",
      { counts: { Failed: 1, Succeeded: 8, Unchanged: 91 } },
      "Halted",
    ],
    ["does not count skipped targets", "10%", { counts: { Failed: 1, Succeeded: 8, Skipped: 1 } }, "Halted"],
    ["is none for a single changed target", "99%", { counts: { Failed: 1, Unchanged: 99 } }, "Halted"],
    [
      "does not count preexisting failures",
      0,
      { counts: { Failed: 1, Succeeded: 1 }, preexistingFailures: 1 },
      "Passed",
    ],
  ])("the budget of failures %s", (_name, maxFailures, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), { ...strict, maxFailures }).phase).toBe(phase);
  });

  test("a halt says how many failed, of how many, in which stage, and the first reason", () => {
    const failures = [
      { cluster: "a", reason: "Invalid" },
      { cluster: "b", reason: "NotReady" },
    ];
    const stageRun = stageRunInState({ stage: "early", counts: { Failed: 2, Waiting: 4, Unchanged: 3 }, failures });
    const message = "2 of 6 clusters failed in stage early (allowed: 0): a: Invalid";
    expect(verdictOf(stageRun, strict)).toEqual({ phase: "Halted", reason: "TooManyFailures", message });
  });
});

test("a preexisting failure never hides the first failure that counts", () => {
  const failed = (cluster: string, preexisting?: true) => ({
    cluster,
    state: "Failed" as const,
    reason: "R",
    preexisting,
  });
  let stageRun = stageRunInState({ stage: "early", counts: { Failed: 3, Waiting: 1 } });
  for (const one of [failed("old1", true), failed("bad"), failed("old2", true)]) stageRun = withOutcome(stageRun, one);
  expect(stageRun.failures.map(({ cluster }) => cluster)).toEqual(["bad", "old1", "old2"]);
  expect(verdictOf(stageRun, strict).message).toBe("1 of 4 clusters failed in stage early (allowed: 0): bad: R");
});

describe("the budget of unreachable targets", () => {
  test.each<[string, number | `${number}%`, StageRun, StageRunPhase]>([
    ["rounds up", "10%", { counts: { Unreachable: 1, Succeeded: 1 } }, "Passed"],
    ["does not allow one more", "10%", { counts: { Unreachable: 2, Succeeded: 8 } }, "TooManyUnreachable"],
    ["is judged when the stage run ends", 0, { counts: { Unreachable: 5, Waiting: 1 } }, "Updating"],
    ["allows none if it is 0%", "0%", { counts: { Unreachable: 1, Succeeded: 9 } }, "TooManyUnreachable"],
    [
      "does not count the Unchanged targets",
      "10%",
      { counts: { Unreachable: 2, Succeeded: 1, Unchanged: 97 } },
      "TooManyUnreachable",
    ],
  ])("the budget of unreachable targets %s", (_name, maxUnreachable, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), { ...strict, maxUnreachable }).phase).toBe(phase);
  });
});

describe("a stage run that deletes", () => {
  test.each<[string, StageRun, StageRunPhase]>([
    ["needs no evidence", allGone, "Passed"],
    ["allows no unreachable cluster", { counts: { Succeeded: 9, Unreachable: 1 } }, "TooManyUnreachable"],
    ["allows no failure", { counts: { Succeeded: 9, Failed: 1 } }, "Halted"],
    ["continues with the other clusters", { counts: { Waiting: 1, Failed: 1 } }, "Updating"],
  ])("a stage run that deletes %s, whatever the budgets", (_name, stageRun, phase) => {
    expect(verdictOf(stageRunInState(stageRun), generous, { deletion: true }).phase).toBe(phase);
  });

  test("a stage run that deletes says that the deletion failed", () => {
    expect(verdictOf(stageRunInState({ counts: { Failed: 1 } }), strict, { deletion: true }).reason).toBe(
      "DeletionFailed",
    );
  });
});

test.each<[string, StageRun, string]>([
  ["all unreachable", allUnreachable, "nothing verified in stage all: 2 Unreachable"],
  ["all preexisting failures", allPreexisting, "nothing verified in stage all: 2 Failed, 2 of them not ready before"],
  ["both", { counts: { Unreachable: 1, Failed: 1 } }, "nothing verified in stage all: 1 Unreachable, 1 Failed"],
  ["an empty snapshot", emptySnapshot, "stage all is empty: passed at once"],
  ["passed", { counts: { Succeeded: 2, Skipped: 1, Unreachable: 0 } }, "stage all passed: 2 succeeded, 1 skipped"],
])("the message of a stage run says why it stands there: %s", (_name, stageRun, message) => {
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
