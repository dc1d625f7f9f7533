import { describe, expect, test } from "vitest";
import { advance, type Gates, type StageRunFacts, stageRunFacts } from "#shared/fleet/rollout/advance.ts";
import { withOutcome } from "#shared/fleet/rollout/stage-runs.ts";
import { type BakeFreeze, type StageRunPhase, stalledPhases } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf, stageRunInState } from "#test/support/rollout-state-rows.ts";
import { groupRow } from "#test/unit/cli/format/overview-fixture.ts";

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
      expect(advance(stageRunInState({ stage, ...stageRun }), { pace: strict }).phase).toBe(withStrict);
      expect(advance(stageRunInState({ stage, ...stageRun }), { pace: generous }).phase).toBe(withGenerous);
    },
  );

  test("a stage run continues while a target waits, is rendered for, or has a slot", () => {
    for (const state of ["Waiting", "Rendering", "Assigned"] as const)
      expect(
        advance(stageRunInState({ stage, counts: { Succeeded: 3, [state]: 1 } }), { pace: strict }).phase,
        state,
      ).toBe("Updating");
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
    expect(advance(stageRunInState(stageRun), { pace: { ...strict, maxFailures } }).phase).toBe(phase);
  });

  test("a halt says how many failed, of how many, in which stage, and the first reason", () => {
    const failures = [
      { cluster: "a", reason: "Invalid" },
      { cluster: "b", reason: "NotReady" },
    ];
    const stageRun = stageRunInState({ stage: "early", counts: { Failed: 2, Waiting: 4, Unchanged: 3 }, failures });
    const message = "2 of 6 clusters failed in stage early (allowed: 0): a: Invalid";
    expect(advance(stageRun, { pace: strict })).toMatchObject({ phase: "Halted", reason: "TooManyFailures", message });
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
  for (const one of [failed("old1", true), failed("bad"), failed("old2", true)])
    stageRun = withOutcome(stageRun, { ...one, at: "2026-11-22T00:00:00.000Z" });
  expect(stageRun.failures.map(({ cluster }) => cluster)).toEqual(["bad", "old1", "old2"]);
  expect(advance(stageRun, { pace: strict }).message).toBe(
    "1 of 4 clusters failed in stage early (allowed: 0): bad: R",
  );
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
    expect(advance(stageRunInState(stageRun), { pace: { ...strict, maxUnreachable } }).phase).toBe(phase);
  });
});

describe("a stage run that deletes", () => {
  test.each<[string, StageRun, StageRunPhase]>([
    ["needs no evidence", allGone, "Passed"],
    ["allows no unreachable cluster", { counts: { Succeeded: 9, Unreachable: 1 } }, "TooManyUnreachable"],
    ["allows no failure", { counts: { Succeeded: 9, Failed: 1 } }, "Halted"],
    ["continues with the other clusters", { counts: { Waiting: 1, Failed: 1 } }, "Updating"],
  ])("a stage run that deletes %s, whatever the budgets", (_name, stageRun, phase) => {
    expect(advance(stageRunInState(stageRun), { pace: generous, deletion: true }).phase).toBe(phase);
  });

  test("a stage run that deletes says that the deletion failed", () => {
    expect(advance(stageRunInState({ counts: { Failed: 1 } }), { pace: strict, deletion: true }).reason).toBe(
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
  [
    "one target has left",
    { counts: { Skipped: 1, Unchanged: 1 } },
    "nothing verified in stage all: 1 cluster left before it was verified",
  ],
  ["all have left", allGone, "nothing verified in stage all: 2 clusters left before it was verified"],
  [
    "all have left before its snapshot",
    { ...allUnchanged, left: true },
    "nothing verified in stage all: clusters left before it was verified, or before this snapshot",
  ],
  [
    "one has left, and others had left before",
    { counts: { Skipped: 1 }, left: true },
    "nothing verified in stage all: 1 cluster left before it was verified, or before this snapshot",
  ],
])("the message of a stage run says why it stands there: %s", (_name, stageRun, message) => {
  expect(advance(stageRunInState(stageRun), { pace: generous }).message).toBe(message);
});

test("an empty first stage verifies nothing, unless it is optional", () => {
  expect(advance(stageRunInState(emptySnapshot), { pace: generous, mustVerify: true })).toMatchObject({
    phase: "NothingVerified",
    message: "no cluster matches stage all; register one there, or set optional: true on the stage to pass without",
  });
  expect(advance(stageRunInState(emptySnapshot), { pace: generous, mustVerify: false }).phase).toBe("Passed");
});

test("a halt of a single target names no reason when none is kept", () => {
  expect(advance(stageRunInState({ counts: { Failed: 1 } }), { pace: strict }).message).toBe(
    "1 of 1 cluster failed in stage all (allowed: 0)",
  );
});

describe("the facts about a stage run that its owner's rows tell", () => {
  const updatingTo = { rollout: 2, stage: "early", snapshot: 1 };
  const stages = [
    stageRecordOf("canary", { current: 1 }),
    stageRecordOf("early", { current: 1, updatingTo, ahead: true }),
    stageRecordOf("rest", { current: 1 }),
  ];
  const row = groupRow({ operations: { resumed: { by: "ana", at, number: 1 } } });
  const factsOf = (index: number, of = stages, owner = row) => {
    const own = { rollout: 2, stage: of[index]?.name ?? "", snapshot: 1 };
    const named = of.map((stage) => (stage.name === own.stage ? { ...stage, updatingTo: own } : stage));
    const rolloutState = rolloutStateOf(named, { last: 2, deadline: "2026-11-21T08:10:00.000Z" });
    return stageRunFacts({ rolloutState, row: owner, rollouts: new Map() }, own);
  };

  test("the pace, the end of the last suspension and the nearest deadline are those of the rows", () => {
    expect(factsOf(0)).toMatchObject({
      pace: row.spec.rollout,
      deletion: false,
      resumedAt: at,
      deadline: "2026-11-21T08:10:00.000Z",
    });
  });

  test("the first stage must verify, unless it is optional, and no other one must", () => {
    expect([0, 1, 2].map((index) => factsOf(index).mustVerify)).toEqual([true, false, false]);
    expect(factsOf(9).mustVerify).toBe(false);
    const [first, ...others] = row.spec.rollout.stages;
    if (first === undefined) throw new Error("there are stages");
    const withFirst = (optional: boolean) => {
      const rollout = { ...row.spec.rollout, stages: [{ ...first, optional }, ...others] };
      return groupRow({ spec: { ...row.spec, rollout } });
    };
    expect(factsOf(0, stages, withFirst(true)).mustVerify).toBe(false);
    expect(factsOf(0, stages, withFirst(false)).mustVerify).toBe(true);
  });

  test("each stage but the last one is awaited", () => {
    expect([0, 1, 2].map((index) => factsOf(index).isAwaited)).toEqual([true, true, false]);
  });

  test("a stage run that an edit put ahead waits until the stage before has passed its rollout", () => {
    const canary = stageRecordOf("canary", { current: 2 });
    const { ahead: _ahead, ...early } = stages[1] ?? stageRecordOf("early");
    expect(factsOf(1).isAhead).toBe(true);
    expect(factsOf(1, stages.with(0, canary)).isAhead).toBe(false);
    expect(factsOf(1, stages.with(1, early)).isAhead).toBe(false);
  });
});

describe("a newer rollout and a stage run", () => {
  const startedAt = "2026-11-21T08:00:00.000Z";
  const holds = [{ cause: "freeze", name: "inc", clusters: [0, 1] }] as const;
  const [earlier, later] = ["2026-11-21T07:00:00.000Z", "2026-11-21T09:00:00.000Z"];
  /** Legend: what it does, its counts, the other facts, and whether it accepts a newer rollout and is in flight. */
  test.each<[string, StageRun, Partial<StageRunFacts>, acceptsNewer: boolean, inFlight: boolean]>([
    ["changes a target", { counts: { Assigned: 1 } }, {}, false, true],
    ["waits for slots or renderings", { counts: { Waiting: 2, Rendering: 1 } }, {}, false, true],
    ["waits for a stage that was put before it", { counts: { Waiting: 2 } }, { isAhead: true }, true, false],
    ["waits for a freeze only", { counts: { Waiting: 2, Succeeded: 1 }, holds }, {}, true, false],
    [
      "waits for a freeze only, and later stages wait for it",
      { counts: { Waiting: 2, Succeeded: 1 }, holds },
      { isAwaited: true },
      true,
      false,
    ],
    ["deletes, and continues after a failure", { counts: { Waiting: 1, Failed: 1 } }, { deletion: true }, false, true],
    ["started at the moment of the resume", { counts: { Waiting: 2 } }, { resumedAt: at }, false, true],
    ["waits for a freeze, and changes a target", { counts: { Waiting: 2, Assigned: 1 }, holds }, {}, false, true],
    ["waits for a freeze or an idle worker", { counts: { Waiting: 2, Assigned: 1 }, holds }, { stuck: 1 }, true, false],
    ["waits for a freeze or its turn", { counts: { Waiting: 3 }, holds }, {}, false, true],
    ["waits for idle workers only", { counts: { Assigned: 2 } }, { stuck: 2 }, true, false],
    [
      "halts at the deadline of what cannot progress",
      { counts: { Assigned: 1, Waiting: 3 } },
      { stuck: 1, doomed: { all: 1, preexisting: 0 } },
      true,
      false,
    ],
    [
      "bears what cannot progress, and others wait for their turn",
      { counts: { Assigned: 1, Waiting: 3, Succeeded: 1 } },
      { stuck: 1, doomed: { all: 1, preexisting: 1 } },
      false,
      true,
    ],
    [
      "passes at the deadline of what cannot progress, and later stages wait for that",
      { counts: { Assigned: 1, Succeeded: 1 } },
      { stuck: 1, doomed: { all: 1, preexisting: 1 }, isAwaited: true },
      false,
      true,
    ],
    [
      "passes at the deadline of what cannot progress, and nobody waits for that",
      { counts: { Assigned: 1, Succeeded: 1 } },
      { stuck: 1, doomed: { all: 1, preexisting: 1 } },
      true,
      false,
    ],
    ["had assigned nothing when it was suspended", { counts: { Waiting: 2 } }, { resumedAt: later }, true, true],
    ["started after the suspension", { counts: { Waiting: 2 } }, { resumedAt: earlier }, false, true],
    ["had begun when it was suspended", { counts: { Assigned: 1 } }, { resumedAt: later }, false, true],
    ["has halted", allFailed, {}, true, false],
    ["has passed", { ...allReady, phase: "Passed" }, {}, true, false],
  ])("a stage run that %s", (_what, stageRun, facts, acceptsNewer, inFlight) => {
    const advanced = advance(stageRunInState({ startedAt, ...stageRun }), { pace: strict, ...facts });
    expect(advanced).toMatchObject({ acceptsNewer, inFlight });
  });

  test("a stage run does not pass while it waits for a stage that was put before it", () => {
    expect(advance(stageRunInState(allReady), { pace: strict, isAhead: true }).phase).toBe("Updating");
    expect(advance(stageRunInState(allFailed), { pace: strict, isAhead: true }).phase).toBe("Halted");
    const stalled = { phase: "NothingVerified", reason: "NothingVerified", message: "no cluster matches" } as const;
    const stageRun = stageRunInState({ ...emptySnapshot, ...stalled });
    expect(advance(stageRun, { pace: strict, isAhead: true })).toMatchObject(stalled);
    expect(advance(stageRun, { pace: strict }).phase).toBe("Passed");
  });

  test("the deadline of an attempt is the timer of a stage run that updates, and of no other one", () => {
    const facts = { pace: strict, deadline: later };
    expect(advance(stageRunInState({ counts: { Assigned: 1 } }), facts).timers).toEqual([
      { at: later, why: "the deadline of an attempt" },
    ]);
    expect(advance(stageRunInState(allFailed), facts).timers).toEqual([]);
  });

  test.each(["Passed", "Superseded"] as const)("a stage run that is %s stays so, whatever its counts are", (phase) => {
    expect(advance(stageRunInState({ ...allFailed, phase, message: "m" }), { pace: strict })).toMatchObject({
      phase,
      reason: phase,
      message: "m",
    });
  });
});

describe("the gates of a stage run", () => {
  const timers = [{ at, why: "the bake ends" }];
  const waiting = { state: "waiting", message: "waits for a robot", timers } as const;
  const failed = { state: "failed", message: "the robot said no" } as const;
  const passed = { state: "passed" } as const;
  const unbegun: StageRun = { counts: { Waiting: 2 } };
  const begun: StageRun = { counts: { Waiting: 1, Assigned: 1 } };
  /** Legend: counts, gates, phase, and whether it accepts a newer rollout and is in flight. */
  test.each<[string, StageRun, Gates, string, acceptsNewer: boolean, inFlight: boolean]>([
    ["a gate after it is open", allReady, { after: waiting }, "Baking", false, true],
    ["a gate after it failed", allReady, { after: failed }, "GateFailed", true, false],
    ["the gates after it passed", allReady, { after: passed }, "Passed", true, false],
    ["its targets are not settled", begun, { after: waiting }, "Updating", false, true],
    ["it halts before its bake", allFailed, { after: waiting }, "Halted", true, false],
  ])("%s", (_what, stageRun, gates, phase, acceptsNewer, inFlight) => {
    const advanced = advance(stageRunInState(stageRun), { pace: strict }, gates);
    expect(advanced).toMatchObject({ phase, acceptsNewer, inFlight });
  });

  test("an open gate says what it waits for, and when it has to be examined again", () => {
    expect(advance(stageRunInState(allReady), { pace: strict }, { after: waiting })).toMatchObject({
      reason: "Baking",
      message: "waits for a robot",
      timers,
    });
    expect(advance(stageRunInState(allReady), { pace: strict }, { after: failed }).timers).toEqual([]);
  });

  const inc = { name: "inc", at };
  /** Legend: freezes during a bake of 30 minutes from 08:00, and when it ends; undefined while its clock stands. */
  test.each<[string, readonly BakeFreeze[], string | undefined]>([
    ["no freeze", [], "08:30"],
    ["a freeze of every cluster", [{ ...inc, covers: true }], undefined],
    ["a freeze of some clusters", [{ ...inc, covers: false }], "08:30"],
    ["a freeze that has ended", [{ ...inc, covers: true, to: "2026-11-21T08:10:00.000Z" }], "08:40"],
    ["a freeze that ended before", [{ ...inc, covers: true, to: "2026-11-21T07:50:00.000Z" }], "08:30"],
    ["a freeze of some clusters that has ended", [{ ...inc, covers: false, to: "2026-11-21T08:10:00.000Z" }], "08:30"],
  ])("the clock of a bake with %s", (_what, freezes, end) => {
    const gates = { after: [{ bake: "30m" }] };
    const stageRun = stageRunInState({ ...allReady, gates, bake: { from: at, stood: 0, freezes } });
    const clock = { stood: 0, suspendedAt: undefined, resumedAt: undefined, progressSeconds: 600 };
    const advanced = advance(stageRun, { pace: strict, bakeClock: clock });
    expect(advanced.phase).toBe("Baking");
    const ends = end === undefined ? [] : [{ at: `2026-11-21T${end}:00.000Z`, why: "the end of a bake" }];
    expect(advanced.timers).toEqual(ends);
  });

  test("a stage run without gates never has the phase of a gate", () => {
    const phases = [unbegun, begun, allReady, allFailed, allUnreachable, emptySnapshot].map(
      (stageRun) => advance(stageRunInState(stageRun), { pace: strict }).phase,
    );
    expect(new Set(phases).isSubsetOf(new Set(["Updating", "Passed", ...stalledPhases]))).toBe(true);
  });
});
