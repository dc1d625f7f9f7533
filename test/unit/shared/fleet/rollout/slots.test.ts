import { describe, expect, test } from "vitest";
import {
  changingOf,
  type Mover,
  membersOfAll,
  moversOf,
  ownRoom,
  servedNext,
  turnsOf,
} from "#shared/fleet/rollout/slots.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf, stageRunInState } from "#test/support/rollout-state-rows.ts";

const catchUps: Mover = {};
const mover = (stage: number, more: Omit<Mover, "stage"> = {}): Mover => ({
  stage,
  stageRun: stageRunInState({ stage: `s${stage}`, size: 50 }),
  ...more,
});

interface Situation {
  readonly stages: readonly (Partial<StageRecord> | undefined)[];
  readonly movers: readonly Mover[];
  readonly maxConcurrent: number;
  readonly rolloutState?: Partial<RolloutStateRow>;
}

/** The slots that each mover may have, in their order; catch-ups are `a`. */
function turns({ stages, movers, maxConcurrent, rolloutState }: Situation) {
  const row = rolloutStateOf(
    stages.map((stage, index) => stageRecordOf(`s${index}`, { members: 100, ...stage })),
    rolloutState,
  );
  const pace = { maxConcurrent, maxFailures: 0, maxUnreachable: 0 };
  return turnsOf(row, movers, pace).map((turn) => [turn.mover.stage ?? "a", turn.slots]);
}

const idle = { changing: 0 };

describe("the bound", () => {
  test("the bound counts what all stage runs and catch-ups hold together", () => {
    const rolloutState = rolloutStateOf(
      [stageRecordOf("a", { changing: 2, members: 3 }), stageRecordOf("b", { changing: 3, members: 4 })],
      {
        catchUps: { waiting: 9, changing: 4, failed: 9 },
      },
    );
    expect([changingOf(rolloutState), membersOfAll(rolloutState)]).toEqual([9, 7]);
  });

  test.each<[string, number, readonly number[], number]>([
    ["the whole bound, while no cluster changes", 5, [0], 5],
    ["the rest of the bound", 5, [3], 2],
    ["nothing, when the bound is used up", 5, [5], 0],
    ["nothing, when the bound was lowered below what is changing", 2, [5], 0],
  ])("the only stage may have %s", (_name, maxConcurrent, changing, slots) => {
    const stages = changing.map((count) => ({ changing: count }));
    expect(turns({ stages, movers: [mover(0)], maxConcurrent })).toEqual([[0, slots]]);
  });

  test("the bound is at most 500, however many clusters there are", () => {
    expect(turns({ stages: [{ members: 10_000 }], movers: [mover(0)], maxConcurrent: 9_999 })).toEqual([[0, 500]]);
  });
});

describe("one slot is reserved, so that a repair never waits for unhealthy clusters", () => {
  test("later stages and catch-ups hold at most the bound less one", () => {
    expect(turns({ stages: [idle, { changing: 38 }], movers: [mover(1)], maxConcurrent: 40 })).toEqual([[1, 1]]);
    expect(turns({ stages: [idle, { changing: 39 }], movers: [mover(1)], maxConcurrent: 40 })).toEqual([[1, 0]]);
    const rolloutState = { catchUps: { waiting: 5, changing: 1, failed: 0 } };
    expect(turns({ stages: [idle, idle], movers: [catchUps], maxConcurrent: 2, rolloutState })).toEqual([["a", 0]]);
  });

  test("the first stage may use the reserved slot", () => {
    expect(turns({ stages: [idle, { changing: 39 }], movers: [mover(0)], maxConcurrent: 40 })).toEqual([[0, 1]]);
  });

  test("the first stage that has clusters has the reserved slot, and other stages' clusters do not use it", () => {
    const stages = [{ members: 0 }, { changing: 3 }, idle];
    expect(turns({ stages, movers: [mover(2)], maxConcurrent: 6 })).toEqual([[2, 3]]);
  });

  test("without work in the first stage, the earliest stage with work may use the reserved slot for one cluster", () => {
    const unhealthy = { changing: 39 };
    expect(turns({ stages: [idle, idle, unhealthy], movers: [mover(1)], maxConcurrent: 40 })).toEqual([[1, 1]]);
    expect(turns({ stages: [idle, idle, unhealthy], movers: [mover(2)], maxConcurrent: 40 })).toEqual([[2, 0]]);
    expect(turns({ stages: [idle, { changing: 1 }, { changing: 38 }], movers: [mover(1)], maxConcurrent: 40 })).toEqual(
      [[1, 0]],
    );
    const both = { stages: [idle, idle, unhealthy], movers: [mover(0), mover(1)], maxConcurrent: 40 };
    expect(turns(both)).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(turns({ stages: [idle, idle, unhealthy], movers: [catchUps], maxConcurrent: 40 })).toEqual([["a", 0]]);
  });

  test("a stage without clusters needs no reserved slot", () => {
    const stages = [{ members: 0 }, { changing: 1 }, idle];
    expect(turns({ stages, movers: [mover(1)], maxConcurrent: 2 })).toEqual([[1, 1]]);
    expect(turns({ stages, movers: [mover(2)], maxConcurrent: 2 })).toEqual([[2, 1]]);
  });

  test("when the first stage uses the whole bound, the others get nothing", () => {
    expect(turns({ stages: [{ changing: 3 }, idle], movers: [mover(1)], maxConcurrent: 3 })).toEqual([[1, 0]]);
  });
});

describe("a bound of one slot", () => {
  test("a bound of one reserves nothing, and all movers take turns, however often commits come", () => {
    const movers = [mover(0), mover(1), catchUps];
    const before = [[], ["s0"], ["s0", "s1"], ["s0", "s1", ""]];
    const first = before.map(
      (served) => turns({ stages: [idle, idle], movers, maxConcurrent: 1, rolloutState: { served } })[0],
    );
    expect(first).toEqual([
      [0, 1],
      [1, 1],
      ["a", 1],
      [0, 1],
    ]);
  });

  test("a later stage has the only slot when no earlier one needs it", () => {
    expect(turns({ stages: [idle, idle], movers: [mover(1)], maxConcurrent: 1 })).toEqual([[1, 1]]);
  });
});

describe("the movers that need slots", () => {
  const counts = { Waiting: 2 };
  /** Rollout 2 is the newest; for an owner that is being deleted, it is the deletion. */
  const movers = (
    stageRun: Partial<Omit<StageRunRow, "counts">> & Pick<StageRunRow, "rollout">,
    isGoing = false,
    waiting = counts,
  ) => {
    const row = stageRunInState({ ...stageRun, counts: waiting });
    const rolloutState = rolloutStateOf([stageRecordOf("all", { updatingTo: refOf(row) })], {
      last: 2,
      catchUps: { waiting: 1, changing: 0, failed: 0 },
    });
    const stageRuns = new Map([[stageRunKey(row), row]]);
    return moversOf({ rolloutState, stageRuns, rollout: { stages: [] }, isGoing }).map(({ stage }) => stage ?? "a");
  };

  test.each([1, 2])("stage runs that update need slots, the newest or not (%i), and so do catch-ups", (rollout) => {
    expect(movers({ rollout })).toEqual([0, "a"]);
  });

  test("a stage run that stands still or has no waiting targets needs no slots", () => {
    expect(movers({ rollout: 2, phase: "Halted" })).toEqual(["a"]);
    expect(movers({ rollout: 2 }, false, { Waiting: 0 })).toEqual(["a"]);
  });

  test("an owner that is being deleted needs slots for the deletion only", () => {
    expect([movers({ rollout: 2 }, true), movers({ rollout: 1 }, true)]).toEqual([[0], []]);
  });
});

describe("the turns of movers", () => {
  test("movers that have had no turn for the longest time come first", () => {
    const movers = [mover(0), mover(1), catchUps];
    const order = (...served: string[]) =>
      turns({ stages: [idle, idle], movers, maxConcurrent: 30, rolloutState: { served } }).map(([who]) => who);
    expect([order(), order("s0"), order("s1", "s0"), order("", "s1", "s0")]).toEqual([
      [0, 1, "a"],
      [1, "a", 0],
      ["a", 1, 0],
      ["a", 1, 0],
    ]);
  });

  test("each mover is recorded once, and as many are kept as there may be", () => {
    expect(servedNext({}, mover(0))).toEqual(["s0"]);
    expect(servedNext({ served: ["s0", "", "s1"] }, mover(0))).toEqual(["", "s1", "s0"]);
    expect(servedNext({ served: ["s0", "s1"] }, catchUps)).toEqual(["s0", "s1", ""]);
    const many = Array.from({ length: 13 }, (_, index) => `gone${index}`);
    expect(servedNext({ served: many }, mover(0))).toEqual([...many.slice(1), "s0"]);
  });

  test("movers get an even share of the free slots", () => {
    const movers = [mover(0), mover(1), catchUps];
    expect(turns({ stages: [idle, idle], movers, maxConcurrent: 31 })).toEqual([
      [0, 11],
      [1, 10],
      ["a", 10],
    ]);
  });

  test("no movers have no turns", () => {
    expect(turns({ stages: [idle], movers: [], maxConcurrent: 3 })).toEqual([]);
  });
});

describe("a stage's own bound", () => {
  test.each<[string, number | `${number}%`, number, number]>([
    ["holds within the group's", 2, 0, 2],
    ["counts the slots of its clusters", 2, 1, 1],
    ["is never less than one", "1%", 0, 1],
    ["is a share of its stage run", "10%", 2, 3],
    ["gives nothing when it is used up", 2, 2, 0],
    ["gives nothing when it was lowered since", 2, 7, 0],
    ["is never more than the group's", 90, 0, 20],
  ])("a stage's own bound %s", (_name, maxConcurrent, changing, slots) => {
    const own = mover(0, { maxConcurrent });
    expect(turns({ stages: [{ changing }], movers: [own], maxConcurrent: 20 })).toEqual([[0, slots]]);
  });

  test("a stage's own bound counts catch-ups, too", () => {
    const own = mover(0, { maxConcurrent: 4 });
    const rolloutState = { catchUps: { waiting: 0, changing: 2, failed: 0 } };
    expect(turns({ stages: [{ changing: 1, catchingUp: 2 }], movers: [own], maxConcurrent: 20, rolloutState })).toEqual(
      [[0, 1]],
    );
  });

  test.each<[string, number | `${number}%` | undefined, number]>([
    ["without a value has room", undefined, 1000],
    ["is a share of its members for catch-ups", "50%", 2],
    ["that is used up has no room", 3, 0],
  ])("a stage's own bound %s", (_name, own, room) => {
    expect(Math.min(1000, ownRoom(stageRecordOf("a", { members: 10, changing: 1, catchingUp: 2 }), own))).toBe(room);
  });
});
