import { describe, expect, test } from "vitest";
import { type Feed, type Feeding, isThrough, nextFeed, stagesNamed } from "#shared/fleet/rollout/feed.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
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

function feed(
  stages: readonly Standing[],
  more: Partial<Omit<Feeding, "stageRuns">> & { rolloutState?: Partial<RolloutStateRow> } = {},
) {
  const { rolloutState: row, ...feeding } = more;
  const { rolloutState, stageRuns } = standing(stages, row);
  return nextFeed(rolloutState, {
    stageRuns,
    isNew: false,
    supersede: "pipeline",
    stuck: new Map(),
    halting: new Set(),
    passing: new Set(),
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

  test("a stage run that had assigned nothing when it was suspended gives way, and one that started later does not", () => {
    const unbegun = stageRun(2, "canary", { counts: { Waiting: 2 }, startedAt: "2026-11-21T08:00:00.000Z" });
    const after = { resumedAt: "2026-11-21T09:00:00.000Z" };
    const before = { resumedAt: "2026-11-21T07:00:00.000Z" };
    const stages = (one: StageRunRow) => [{ current: 1, stageRun: one }, { current: 1 }, { current: 1 }];
    expect(feed(stages(unbegun), { isNew: true, ...after })).toEqual(newest);
    expect(feed(stages(unbegun), { isNew: true, ...before })).toBeUndefined();
    expect(
      feed(stages({ ...unbegun, counts: { ...unbegun.counts, Assigned: 1 } }), { isNew: true, ...after }),
    ).toBeUndefined();
  });

  test.each<[string, Partial<StageRunRow["counts"]>, number, Feed | undefined]>([
    ["a freeze gives way", { Waiting: 2, Succeeded: 1 }, 0, newest],
    ["a freeze or a stuck worker gives way", { Waiting: 2, Assigned: 1 }, 1, newest],
    ["a freeze or a changing cluster stays", { Waiting: 2, Assigned: 1 }, 0, none],
    ["a freeze or a slot stays", { Waiting: 3 }, 0, none],
    ["a freeze or a rendering stays", { Waiting: 2, Rendering: 1 }, 0, none],
  ])("a stage run whose remaining clusters wait for %s", (_what, counts, stuck, fed) => {
    const held = stageRun(2, "canary", { counts: { Assigned: 0, ...counts }, frozen: { as: "", by: { inc: [0, 1] } } });
    const stages = [{ current: 1, stageRun: held }, { current: 1 }, { current: 1 }];
    const found = new Map([[stageRunKey(held), stuck]]);
    expect(feed(stages, { isNew: true, stuck: found })).toEqual(fed);
    expect(feed(stages, { isNew: true, stuck: found, supersede: "finish" })).toEqual(fed);
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

test.each<[string, readonly Standing[], boolean]>([
  ["every stage has the newest rollout", [{ current: 2 }, { current: 2 }], true],
  ["one stage has an older rollout", [{ current: 2 }, { current: 1 }], false],
  ["one stage is updating", [{ current: 2 }, { current: 2, stageRun: stageRun(2, "early") }], false],
])("all rollouts are finished when %s: %s", (_name, stages, is) => {
  expect(isThrough(standing(stages, { last: 2 }).rolloutState)).toBe(is);
});

describe("stages are known by their names", () => {
  const current = (name: string, rollout?: number) =>
    stageRecordOf(name, rollout === undefined ? {} : { current: rollout });
  const named = (before: readonly StageRecord[], ...names: string[]) =>
    stagesNamed({ stages: before, last: 0 }, names, { members: new Map() }).map((stage) => [stage.name, stage.current]);

  test.each<[string, readonly StageRecord[], readonly string[], readonly (readonly [string, number | undefined])[]]>([
    [
      "new stages of a new group have no rollout",
      [],
      ["canary", "rest"],
      [
        ["canary", undefined],
        ["rest", undefined],
      ],
    ],
    [
      "a new first stage gets the rollout of the stage after it",
      [current("rest", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "a new middle stage gets the rollout of the stage after it",
      [current("canary", 5), current("rest", 3)],
      ["canary", "early", "rest"],
      [
        ["canary", 5],
        ["early", 3],
        ["rest", 3],
      ],
    ],
    [
      "a new middle stage gets the rollout of the next stage, not of the last one",
      [current("canary", 5), current("early", 4), current("rest", 3)],
      ["canary", "middle", "early", "rest"],
      [
        ["canary", 5],
        ["middle", 4],
        ["early", 4],
        ["rest", 3],
      ],
    ],
    ["a removed stage does not change the others", [current("canary", 5), current("rest", 3)], ["rest"], [["rest", 3]]],
    [
      "stages in another order keep their rollouts, but none is ahead of the one before it",
      [current("canary", 5), current("early", 4), current("rest", 3)],
      ["early", "canary", "rest"],
      [
        ["early", 4],
        ["canary", 4],
        ["rest", 3],
      ],
    ],
    [
      "a renamed last stage gets the rollout of the former last stage",
      [current("canary", 5), current("rest", 3)],
      ["canary", "others"],
      [
        ["canary", 5],
        ["others", 3],
      ],
    ],
    [
      "renamed stages get the rollout that all have",
      [current("all", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "new stages have no rollout while nothing has passed",
      [current("all")],
      ["canary", "rest"],
      [
        ["canary", undefined],
        ["rest", undefined],
      ],
    ],
  ])("%s", (_name, before, names, after) => {
    expect(named(before, ...names)).toEqual(after);
  });

  test.each<[string, Readonly<Record<string, number>>, readonly (readonly [string, number | undefined])[]]>([
    [
      "whose clusters come from an older stage fall back to its rollout",
      { canary: 3 },
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "whose clusters are all known keep their rollouts",
      {},
      [
        ["canary", 5],
        ["rest", 3],
      ],
    ],
    [
      "whose clusters have passed nothing have no rollout",
      { canary: 0 },
      [
        ["canary", undefined],
        ["rest", undefined],
      ],
    ],
  ])("stages %s", (_what, verified, after) => {
    const stages = [current("canary", 5), current("rest", 3)];
    const found = stagesNamed({ stages, last: 5 }, ["canary", "rest"], {
      members: new Map(),
      verified: new Map(Object.entries(verified)),
    });
    expect(found.map((stage) => [stage.name, stage.current])).toEqual(after);
  });

  test("stages keep their stage runs, and get their new numbers of members", () => {
    const updatingTo = { rollout: 6, stage: "canary", snapshot: 0 };
    const before = [
      stageRecordOf("canary", { current: 5, updatingTo, members: 9, changing: 2, failedCatchUps: 1 }),
      current("rest", 3),
    ];
    expect(stagesNamed({ stages: before, last: 0 }, ["canary", "rest"], { members: new Map([["canary", 4]]) })).toEqual(
      [
        { name: "canary", current: 5, updatingTo, members: 4, changing: 2, failedCatchUps: 1 },
        { name: "rest", current: 3, members: 0, changing: 0, failedCatchUps: 0 },
      ],
    );
  });
});
