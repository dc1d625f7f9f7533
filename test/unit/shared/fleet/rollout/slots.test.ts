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

/** Who may have how many, in their order; the arrivals are `a`. */
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
  test("is what all legs and arrivals hold together", () => {
    const rolloutState = rolloutStateOf(
      [stageRecordOf("a", { changing: 2, members: 3 }), stageRecordOf("b", { changing: 3, members: 4 })],
      {
        catchUps: { waiting: 9, changing: 4, failed: 9 },
      },
    );
    expect([changingOf(rolloutState), membersOfAll(rolloutState)]).toEqual([9, 7]);
  });

  test.each<[string, number, readonly number[], number]>([
    ["all of it, while nobody changes", 5, [0], 5],
    ["what is left of it", 5, [3], 2],
    ["nothing, when it is used up", 5, [5], 0],
    ["nothing, when more are changing since it was lowered", 2, [5], 0],
  ])("the only stage may have %s", (_name, maxConcurrent, changing, slots) => {
    const stages = changing.map((count) => ({ changing: count }));
    expect(turns({ stages, movers: [mover(0)], maxConcurrent })).toEqual([[0, slots]]);
  });

  test("is at most 500, however many clusters there are", () => {
    expect(turns({ stages: [{ members: 10_000 }], movers: [mover(0)], maxConcurrent: 9_999 })).toEqual([[0, 500]]);
  });
});

describe("one slot is kept, so that a cure never waits for the sick", () => {
  test("later stages and arrivals hold at most the bound less one", () => {
    expect(turns({ stages: [idle, { changing: 38 }], movers: [mover(1)], maxConcurrent: 40 })).toEqual([[1, 1]]);
    expect(turns({ stages: [idle, { changing: 39 }], movers: [mover(1)], maxConcurrent: 40 })).toEqual([[1, 0]]);
    const rolloutState = { catchUps: { waiting: 5, changing: 1, failed: 0 } };
    expect(turns({ stages: [idle, idle], movers: [catchUps], maxConcurrent: 2, rolloutState })).toEqual([["a", 0]]);
  });

  test("the first stage has it", () => {
    expect(turns({ stages: [idle, { changing: 39 }], movers: [mover(0)], maxConcurrent: 40 })).toEqual([[0, 1]]);
  });

  test("the first that has clusters has it: what changes there is nobody else's", () => {
    const stages = [{ members: 0 }, { changing: 3 }, idle];
    expect(turns({ stages, movers: [mover(2)], maxConcurrent: 6 })).toEqual([[2, 3]]);
  });

  test("meanwhile the earliest that has something to do may have it, for one cluster", () => {
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

  test("a stage without clusters needs none", () => {
    const stages = [{ members: 0 }, { changing: 1 }, idle];
    expect(turns({ stages, movers: [mover(1)], maxConcurrent: 2 })).toEqual([[1, 1]]);
    expect(turns({ stages, movers: [mover(2)], maxConcurrent: 2 })).toEqual([[2, 1]]);
  });

  test("where the first stage uses all, the others get none, and nobody exceeds the bound", () => {
    expect(turns({ stages: [{ changing: 3 }, idle], movers: [mover(1)], maxConcurrent: 3 })).toEqual([[1, 0]]);
  });
});

describe("with a bound of one", () => {
  test("nothing is kept, and everybody has a turn: commits may come faster than the first stage is through", () => {
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

  test("a later one has it when no earlier one wants it", () => {
    expect(turns({ stages: [idle, idle], movers: [mover(1)], maxConcurrent: 1 })).toEqual([[1, 1]]);
  });
});

describe("whoever wants slots", () => {
  const counts = { Waiting: 2 };
  /** Content 2 is the newest: of who goes, its farewell. */
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

  test.each([1, 2])("is what goes through a stage, be it the newest or not (%i), and who comes to it", (rollout) => {
    expect(movers({ rollout })).toEqual([0, "a"]);
  });

  test("is not what stands still, nor what has nobody left", () => {
    expect(movers({ rollout: 2, phase: "Halted" })).toEqual(["a"]);
    expect(movers({ rollout: 2 }, false, { Waiting: 0 })).toEqual(["a"]);
  });

  test("is nothing but the farewell of a subject that goes", () => {
    expect([movers({ rollout: 2 }, true), movers({ rollout: 1 }, true)]).toEqual([[0], []]);
  });
});

describe("turns", () => {
  test("are first of those who had none for longest, whoever had them in between", () => {
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

  test("are noted once of each, as many as there may be", () => {
    expect(servedNext({}, mover(0))).toEqual(["s0"]);
    expect(servedNext({ served: ["s0", "", "s1"] }, mover(0))).toEqual(["", "s1", "s0"]);
    expect(servedNext({ served: ["s0", "s1"] }, catchUps)).toEqual(["s0", "s1", ""]);
    const many = Array.from({ length: 13 }, (_, index) => `gone${index}`);
    expect(servedNext({ served: many }, mover(0))).toEqual([...many.slice(1), "s0"]);
  });

  test("give everybody an even share of what is free", () => {
    const movers = [mover(0), mover(1), catchUps];
    expect(turns({ stages: [idle, idle], movers, maxConcurrent: 31 })).toEqual([
      [0, 11],
      [1, 10],
      ["a", 10],
    ]);
  });

  test("of nobody are none", () => {
    expect(turns({ stages: [idle], movers: [], maxConcurrent: 3 })).toEqual([]);
  });
});

describe("a stage's own bound", () => {
  test.each<[string, number | `${number}%`, number, number]>([
    ["holds within the group's", 2, 0, 2],
    ["counts what its clusters hold", 2, 1, 1],
    ["is never less than one", "1%", 0, 1],
    ["is a share of its leg", "10%", 2, 3],
    ["gives nothing when it is used up", 2, 2, 0],
    ["nor when it was lowered since", 2, 7, 0],
    ["is never more than the group's", 90, 0, 20],
  ])("%s", (_name, maxConcurrent, changing, slots) => {
    const own = mover(0, { maxConcurrent });
    expect(turns({ stages: [{ changing }], movers: [own], maxConcurrent: 20 })).toEqual([[0, slots]]);
  });

  test("counts those that came to it, too", () => {
    const own = mover(0, { maxConcurrent: 4 });
    const rolloutState = { catchUps: { waiting: 0, changing: 2, failed: 0 } };
    expect(turns({ stages: [{ changing: 1, catchingUp: 2 }], movers: [own], maxConcurrent: 20, rolloutState })).toEqual(
      [[0, 1]],
    );
  });

  test.each<[string, number | `${number}%` | undefined, number]>([
    ["has room where there is none", undefined, 1000],
    ["is of its members for those that come", "50%", 2],
    ["is used up", 3, 0],
  ])("%s", (_name, own, room) => {
    expect(Math.min(1000, ownRoom(stageRecordOf("a", { members: 10, changing: 1, catchingUp: 2 }), own))).toBe(room);
  });
});
