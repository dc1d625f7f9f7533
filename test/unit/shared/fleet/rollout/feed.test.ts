import { describe, expect, test } from "vitest";
import { advance } from "#shared/fleet/rollout/advance.ts";
import { type Feed, type Feeding, nextFeed } from "#shared/fleet/rollout/feed.ts";
import { isStalled, refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf, stageRunInState } from "#test/support/rollout-state-rows.ts";

type Counts = NonNullable<Parameters<typeof stageRunInState>[0]["counts"]>;

/** A stage run that has assigned something, unless its counts say otherwise. */
const stageRun = (
  rollout: number,
  stage: string,
  more: Omit<Partial<StageRunRow>, "counts"> & { readonly counts?: Counts } = {},
) => stageRunInState({ rollout, stage, counts: { Assigned: 1 }, ...more });

interface Standing {
  readonly current?: number;
  readonly stageRun?: StageRunRow;
}

/** The stages canary, early and rest, as many as are given. */
function standing(stages: readonly Standing[], more: Partial<RolloutStateRow> = {}) {
  const named = stages.map(({ current, stageRun: updatingTo }, index): StageRecord => {
    const name = ["canary", "early", "rest"][index] ?? "";
    return stageRecordOf(name, {
      ...(current === undefined ? {} : { current }),
      ...(updatingTo === undefined ? {} : { updatingTo: refOf(updatingTo) }),
    });
  });
  const stageRuns = stages.flatMap(({ stageRun: updatingTo }) => updatingTo ?? []);
  const newest = Math.max(
    0,
    ...stages.flatMap(({ current = 0, stageRun: updatingTo }) => [current, updatingTo?.rollout ?? 0]),
  );
  const last = more.last ?? newest;
  const ledger = last === 0 ? [] : [{ number: last, identity: "newest", revision: "r", at: "" }];
  return {
    rolloutState: rolloutStateOf(named, { last, ledger, ...more }),
    stageRuns: new Map(stageRuns.map((one) => [stageRunKey(one), one])),
  };
}

const pace = { maxConcurrent: "10%", maxFailures: 0, maxUnreachable: "10%" } as const;

function feed(
  stages: readonly Standing[],
  more: Partial<Omit<Feeding, "runs">> & { rolloutState?: Partial<RolloutStateRow> } = {},
) {
  const { rolloutState: row, ...feeding } = more;
  const { rolloutState, stageRuns } = standing(stages, row);
  // The counts of a stalled stage run are not said here.
  const stalled = { acceptsNewer: true, inFlight: false };
  const runs = [...stageRuns].map(([key, one]) => [key, isStalled(one) ? stalled : advance(one, { pace })] as const);
  return nextFeed(rolloutState, {
    runs: new Map(runs),
    isNew: false,
    supersede: "pipeline",
    deletion: false,
    ...feeding,
  });
}

const none = undefined;
const newest: Feed = { stage: 0, rollout: "newest" };
const through = [{ current: 1 }, { current: 1 }, { current: 1 }];

describe("an idle stage", () => {
  test.each<[string, readonly Standing[], boolean, Feed | undefined]>([
    ["takes nothing when all stages have the same rollout", through, false, none],
    ["takes a new rollout if it is the first", through, true, newest],
    [
      "takes the rollout that the stage before it has passed",
      [{ current: 2 }, { current: 1 }, { current: 1 }],
      false,
      { stage: 1, rollout: 2 },
    ],
    ["takes a rollout although it had none", [{ current: 1 }, {}, {}], false, { stage: 1, rollout: 1 }],
    [
      "takes the newest passed rollout, and skips those in between",
      [{ current: 9 }, { current: 9 }, { current: 4 }],
      false,
      { stage: 2, rollout: 9 },
    ],
    [
      "never takes an older rollout than its own",
      [{ current: 1 }, { current: 2 }, { current: 2 }],
      false,
      { stage: 0, rollout: 2 },
    ],
    [
      "does not take a rollout that is still updating in the stage before it",
      [{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }],
      false,
      none,
    ],
    ["takes nothing before there is a rollout", [{}, {}, {}], false, none],
    ["takes the first rollout", [{}, {}, {}], true, newest],
  ])("an idle stage %s", (_name, stages, isNew, fed) => {
    expect(feed(stages, { isNew })).toEqual(fed);
  });

  test("the first stage takes a rollout that a removed first stage had and did not pass", () => {
    expect(feed([{ current: 1 }], { rolloutState: { last: 3 } })).toEqual({ stage: 0, rollout: 3 });
    expect(feed([{}], { rolloutState: { last: 3 } })).toEqual({ stage: 0, rollout: 3 });
  });

  test("a stage takes nothing of a former object with the same name", () => {
    expect(feed([{}], { rolloutState: { last: 3, ledger: [] } })).toBeUndefined();
  });
});

describe("a stage with a stage run", () => {
  const stalls = ["Halted", "NothingVerified", "TooManyUnreachable"] as const;

  test("a stage keeps its stage run until it has passed, in the first stage and in the last", () => {
    expect(
      feed([{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }], { isNew: true }),
    ).toBeUndefined();
    expect(feed([{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest") }])).toBeUndefined();
  });

  test("a stage keeps its stage run while that waits for renderings or slots", () => {
    const waits = stageRun(2, "canary", { counts: { Waiting: 2, Rendering: 1 } });
    expect(feed([{ current: 1, stageRun: waits }, { current: 1 }, { current: 1 }], { isNew: true })).toBeUndefined();
  });

  test.each(stalls)(
    "a stage run that is %s gives way to a newer rollout, in the first stage and in the last",
    (phase) => {
      expect(
        feed([{ current: 1, stageRun: stageRun(2, "canary", { phase }) }, { current: 1 }, { current: 1 }], {
          isNew: true,
        }),
      ).toEqual(newest);
      expect(feed([{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest", { phase }) }])).toEqual({
        stage: 2,
        rollout: 3,
      });
    },
  );

  test.each(stalls)("a stage run that is %s gets no new snapshot of its own rollout", (phase) => {
    expect(
      feed([{ current: 1, stageRun: stageRun(2, "canary", { phase }) }, { current: 1 }, { current: 1 }]),
    ).toBeUndefined();
    expect(
      feed([{ current: 2 }, { current: 2 }, { current: 1, stageRun: stageRun(2, "rest", { phase }) }]),
    ).toBeUndefined();
  });

  test("a stage whose stage run accepts a newer rollout takes it, also when it waits for nothing that ends by itself", () => {
    const held = stageRun(2, "canary", {
      counts: { Assigned: 0, Waiting: 2 },
      holds: [{ cause: "freeze", name: "inc", clusters: [0, 1] }],
    });
    const stages = [{ current: 1, stageRun: held }, { current: 1 }, { current: 1 }];
    expect(feed(stages, { isNew: true })).toEqual(newest);
    expect(feed(stages, { isNew: true, supersede: "finish" })).toEqual(newest);
  });

  test("a stage whose stage run is lost starts it again", () => {
    const { rolloutState } = standing([{ current: 2 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }]);
    const feeding = { isNew: false, supersede: "pipeline", deletion: false } as const;
    expect(nextFeed(rolloutState, { ...feeding, runs: new Map() })).toEqual({ stage: 1, rollout: 2 });
  });

  test("a stage run gives way to a deletion, stage by stage", () => {
    const updatingTo = [{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }];
    expect(feed(updatingTo, { isNew: true, deletion: true })).toEqual(newest);
    const later = [{ current: 3 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }];
    expect(feed(later, { deletion: true })).toEqual({ stage: 1, rollout: 3 });
  });
});

describe("several rollouts in progress", () => {
  test("several rollouts update one stage each", () => {
    const stages = [
      { current: 3, stageRun: stageRun(4, "canary") },
      { current: 2, stageRun: stageRun(3, "early") },
      { current: 1, stageRun: stageRun(2, "rest") },
    ];
    expect(feed(stages, { isNew: true })).toBeUndefined();
    expect(feed([{ current: 3 }, ...stages.slice(1)], { isNew: true })).toEqual(newest);
  });

  test.each<[string, readonly Standing[], Feed | undefined]>([
    [
      "one updates a later stage",
      [{ current: 2 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }],
      none,
    ],
    ["one is between two stages", [{ current: 2 }, { current: 2 }, { current: 1 }], { stage: 2, rollout: 2 }],
    [
      "one is to replace a stalled one",
      [{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest", { phase: "Halted" }) }],
      { stage: 2, rollout: 3 },
    ],
    [
      "one is stalled",
      [{ current: 2 }, { current: 2 }, { current: 1, stageRun: stageRun(2, "rest", { phase: "Halted" }) }],
      newest,
    ],
    ["one has passed every stage", [{ current: 2 }, { current: 2 }, { current: 2 }], newest],
  ])("with supersede: finish the next rollout starts only when none is in flight: %s", (_name, stages, fed) => {
    expect(feed(stages, { isNew: true, supersede: "finish" })).toEqual(fed);
  });

  test("a deletion does not wait for rollouts in progress", () => {
    const stages = [{ current: 2 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }];
    expect(feed(stages, { isNew: true, supersede: "finish", deletion: true })).toEqual(newest);
  });
});
