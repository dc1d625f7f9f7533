import { describe, expect, test } from "vitest";
import {
  boundOf,
  changedSize,
  failuresOf,
  isStalled,
  isUnbegun,
  legKey,
  superseded,
  verdictOf,
  waitingOf,
  withOutcome,
  withVerdict,
} from "#shared/fleet/rollout/legs.ts";
import type { LegPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { legOfUnit } from "#test/support/unit-rows.ts";

const strict = { maxConcurrent: "10%", maxFailures: 0, maxUnreachable: "10%" } as const;
const generous = { maxConcurrent: "10%", maxFailures: "100%", maxUnreachable: "100%" } as const;
const at = "2026-11-21T08:00:00.000Z";

type Leg = Parameters<typeof legOfUnit>[0];
const sealedEmpty: Leg = {};
const allReady: Leg = { counts: { Succeeded: 2 } };
const allUnchanged: Leg = { counts: { Unchanged: 2 } };
const allGone: Leg = { counts: { Skipped: 2 } };
const allUnreachable: Leg = { counts: { Unreachable: 2 } };
const allFailed: Leg = { counts: { Failed: 2 } };
const allPreexisting: Leg = { counts: { Failed: 2 }, preexistingFailures: 2 };

describe.each(["canary", "rest"])("a leg through %s, first or last", (stage) => {
  test.each<[string, Leg, LegPhase, LegPhase]>([
    ["sealed empty", sealedEmpty, "Passed", "Passed"],
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
  ])("%s: with strict and with generous budgets", (_name, leg, withStrict, withGenerous) => {
    expect(verdictOf(legOfUnit({ stage, ...leg }), strict).phase).toBe(withStrict);
    expect(verdictOf(legOfUnit({ stage, ...leg }), generous).phase).toBe(withGenerous);
  });

  test("goes on while anybody waits, is rendered for, or has a slot", () => {
    for (const state of ["Waiting", "Rendering", "Assigned"] as const)
      expect(verdictOf(legOfUnit({ stage, counts: { Succeeded: 3, [state]: 1 } }), strict).phase, state).toBe("Moving");
  });
});

describe("the budget of failures", () => {
  test.each<[string, number | `${number}%`, Leg, LegPhase]>([
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
  ])("%s", (_name, maxFailures, leg, phase) => {
    expect(verdictOf(legOfUnit(leg), { ...strict, maxFailures }).phase).toBe(phase);
  });

  test("says how many, of how many, where, and why the first did", () => {
    const failures = [
      { cluster: "a", reason: "Invalid" },
      { cluster: "b", reason: "NotReady" },
    ];
    const leg = legOfUnit({ stage: "early", counts: { Failed: 2, Waiting: 4, Unchanged: 3 }, failures });
    const message = "2 clusters failed of 6 in stage early (allows 0): a: Invalid";
    expect(verdictOf(leg, strict)).toEqual({ phase: "Halted", reason: "TooManyFailures", message });
  });
});

test("a failure that does not count never takes the place of the first one that does", () => {
  const failed = (cluster: string, preexisting?: true) => ({
    cluster,
    state: "Failed" as const,
    reason: "R",
    preexisting,
  });
  let leg = legOfUnit({ stage: "early", counts: { Failed: 3, Waiting: 1 } });
  for (const one of [failed("sick1", true), failed("bad"), failed("sick2", true)]) leg = withOutcome(leg, one);
  expect(leg.failures.map(({ cluster }) => cluster)).toEqual(["bad", "sick1", "sick2"]);
  expect(verdictOf(leg, strict).message).toBe("1 cluster failed of 4 in stage early (allows 0): bad: R");
});

describe("the budget of those that do not answer", () => {
  test.each<[string, number | `${number}%`, Leg, LegPhase]>([
    ["rounds up", "10%", { counts: { Unreachable: 1, Succeeded: 1 } }, "Passed"],
    ["and bears not one more", "10%", { counts: { Unreachable: 2, Succeeded: 8 } }, "TooManyUnreachable"],
    ["is judged when the leg ends", 0, { counts: { Unreachable: 5, Waiting: 1 } }, "Moving"],
    ["of none is none", "0%", { counts: { Unreachable: 1, Succeeded: 9 } }, "TooManyUnreachable"],
    [
      "is less what is Unchanged",
      "10%",
      { counts: { Unreachable: 2, Succeeded: 1, Unchanged: 97 } },
      "TooManyUnreachable",
    ],
  ])("%s", (_name, maxUnreachable, leg, phase) => {
    expect(verdictOf(legOfUnit(leg), { ...strict, maxUnreachable }).phase).toBe(phase);
  });
});

describe("a leg that deletes", () => {
  test.each<[string, Leg, LegPhase]>([
    ["needs no evidence", allGone, "Passed"],
    ["leaves nobody behind", { counts: { Succeeded: 9, Unreachable: 1 } }, "TooManyUnreachable"],
    ["bears no failure", { counts: { Succeeded: 9, Failed: 1 } }, "Halted"],
    ["goes on with the others all the same", { counts: { Waiting: 1, Failed: 1 } }, "Moving"],
  ])("%s, whatever the budgets", (_name, leg, phase) => {
    expect(verdictOf(legOfUnit(leg), generous, { farewell: true }).phase).toBe(phase);
  });

  test("says that deleting failed", () => {
    expect(verdictOf(legOfUnit({ counts: { Failed: 1 } }), strict, { farewell: true }).reason).toBe("DeletionFailed");
  });
});

test.each<[string, Leg, string]>([
  ["all unreachable", allUnreachable, "nothing verified in stage all: 2 Unreachable"],
  ["all not ready before", allPreexisting, "nothing verified in stage all: 2 Failed, 2 of them not ready before"],
  ["both", { counts: { Unreachable: 1, Failed: 1 } }, "nothing verified in stage all: 1 Unreachable, 1 Failed"],
  ["sealed empty", sealedEmpty, "stage all is empty: passed at once"],
  ["passed", { counts: { Succeeded: 2, Skipped: 1, Unreachable: 0 } }, "stage all passed: 2 succeeded, 1 skipped"],
])("of a leg %s is said why it stands where it does", (_name, leg, message) => {
  expect(verdictOf(legOfUnit(leg), generous).message).toBe(message);
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
  const leg = legOfUnit({
    counts: { Waiting: 1, Rendering: 2, Failed: 3, Unchanged: 4, Skipped: 5 },
    preexistingFailures: 1,
  });
  expect([changedSize(leg), waitingOf(leg), failuresOf(leg)]).toEqual([6, 3, 2]);
  expect(isUnbegun(leg)).toBe(false);
  expect(isUnbegun(legOfUnit({ counts: { Waiting: 1, Rendering: 1, Unchanged: 1, Skipped: 1 } }))).toBe(true);
  for (const state of ["Assigned", "Succeeded", "Failed", "Unreachable"] as const)
    expect(isUnbegun(legOfUnit({ counts: { [state]: 1 } })), state).toBe(false);
  const phases = ["Moving", "Halted", "NothingVerified", "TooManyUnreachable", "Passed", "Superseded"] as const;
  expect(phases.filter((phase) => isStalled({ phase }))).toEqual(["Halted", "NothingVerified", "TooManyUnreachable"]);
  expect(legKey({ content: 3, stage: "early", seal: 1 })).toBe("3#early#1");
});

describe("what is told of a leg", () => {
  test("is told once, and how it moves is nothing new", () => {
    const leg = legOfUnit({ counts: { Waiting: 1 } });
    expect(withVerdict(leg, { phase: "Moving", reason: "Moving", message: "other words" }, at)).toBe(leg);
    const halt = { phase: "Halted", reason: "TooManyFailures", message: "1 failed" } as const;
    const halted = withVerdict(leg, halt, at);
    expect(halted).toMatchObject({ ...halt, transitions: [{ at, ...halt }] });
    expect(halted.endedAt).toBeUndefined();
    expect(withVerdict(halted, halt, "later")).toBe(halted);
    expect(withVerdict(halted, { ...halt, message: "2 failed" }, at).transitions).toHaveLength(2);
    expect(withVerdict(halted, { phase: "Passed", reason: "Passed", message: "" }, at).endedAt).toBe(at);
  });

  test("goes on after many transitions, of which the last are kept", () => {
    let leg = legOfUnit({ counts: { Waiting: 1 } });
    for (let turn = 0; turn < 50; turn++) {
      const phase = turn % 2 === 0 ? ("Halted" as const) : ("Moving" as const);
      leg = withVerdict(leg, { phase, reason: phase, message: `turn ${turn}` }, at);
    }
    expect(leg.transitions).toHaveLength(20);
    expect(leg.transitions.at(-1)?.message).toBe("turn 49");
  });

  test("that another took the place of: nobody has a turn any more, and what is done stays", () => {
    const counts = { Waiting: 1, Rendering: 2, Assigned: 3, Succeeded: 4, Failed: 5 };
    const leg = legOfUnit({ counts, rendering: [1], aside: [2], returned: [3], unrendered: [4] });
    const ended = superseded(leg, 2, at);
    expect(ended).toMatchObject({
      phase: "Superseded",
      supersededBy: 2,
      endedAt: at,
      message: "content 2 took over",
      counts: { Waiting: 0, Rendering: 0, Assigned: 0, Superseded: 6, Succeeded: 4, Failed: 5 },
    });
    expect([ended.rendering, ended.aside, ended.returned, ended.unrendered]).toEqual([[], [], [], []]);
    expect(superseded(leg, 1, at).message).toBe("sealed anew");
  });
});
