import { describe, expect, test } from "vitest";
import { type Feed, type Feeding, isThrough, nextFeed, stagesNamed } from "#shared/fleet/rollout/feed.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf, stageRunInState } from "#test/support/rollout-state-rows.ts";

type Counts = NonNullable<Parameters<typeof stageRunInState>[0]["counts"]>;

/** A leg that has assigned something, unless its counts say otherwise. */
const stageRun = (
  rollout: number,
  stage: string,
  more: Omit<Partial<StageRunRow>, "counts"> & { readonly counts?: Counts } = {},
) => stageRunInState({ rollout, stage, counts: { Assigned: 1 }, ...more });

interface Standing {
  readonly current?: number;
  readonly stageRun?: StageRunRow;
}

/** canary, early and rest, as far as they are said. */
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
    ["takes nothing when all are on the same", through, false, none],
    ["takes what is new, when it is the first", through, true, newest],
    [
      "takes what the one before it passed",
      [{ current: 2 }, { current: 1 }, { current: 1 }],
      false,
      { stage: 1, rollout: 2 },
    ],
    ["takes it when it was on nothing", [{ current: 1 }, {}, {}], false, { stage: 1, rollout: 1 }],
    [
      "takes the newest of what was passed, and not what it missed",
      [{ current: 9 }, { current: 9 }, { current: 4 }],
      false,
      { stage: 2, rollout: 9 },
    ],
    [
      "takes nothing older than it is on",
      [{ current: 1 }, { current: 2 }, { current: 2 }],
      false,
      { stage: 0, rollout: 2 },
    ],
    [
      "takes nothing that only moves before it",
      [{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }],
      false,
      none,
    ],
    ["takes nothing new before anything is wanted", [{}, {}, {}], false, none],
    ["takes the first content", [{}, {}, {}], true, newest],
  ])("%s", (_name, stages, isNew, fed) => {
    expect(feed(stages, { isNew })).toEqual(fed);
  });

  test("takes, as the first, what another one before it was given and had not passed", () => {
    expect(feed([{ current: 1 }], { rolloutState: { last: 3 } })).toEqual({ stage: 0, rollout: 3 });
    expect(feed([{}], { rolloutState: { last: 3 } })).toEqual({ stage: 0, rollout: 3 });
  });

  test("takes nothing of an object that had the same name", () => {
    expect(feed([{}], { rolloutState: { last: 3, ledger: [] } })).toBeUndefined();
  });
});

describe("a stage with a leg", () => {
  const stalls = ["Halted", "NothingVerified", "TooManyUnreachable"] as const;

  test("keeps it until it has passed, in the first stage and in the last", () => {
    expect(
      feed([{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }], { isNew: true }),
    ).toBeUndefined();
    expect(feed([{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest") }])).toBeUndefined();
  });

  test("keeps it while it waits for renderings or slots", () => {
    const waits = stageRun(2, "canary", { counts: { Waiting: 2, Rendering: 1 } });
    expect(feed([{ current: 1, stageRun: waits }, { current: 1 }, { current: 1 }], { isNew: true })).toBeUndefined();
  });

  test.each(stalls)("that is %s lets another in, in the first stage and in the last", (phase) => {
    expect(
      feed([{ current: 1, stageRun: stageRun(2, "canary", { phase }) }, { current: 1 }, { current: 1 }], {
        isNew: true,
      }),
    ).toEqual(newest);
    expect(feed([{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest", { phase }) }])).toEqual({
      stage: 2,
      rollout: 3,
    });
  });

  test.each(stalls)("that is %s is not sealed again for what it moves itself", (phase) => {
    expect(
      feed([{ current: 1, stageRun: stageRun(2, "canary", { phase }) }, { current: 1 }, { current: 1 }]),
    ).toBeUndefined();
    expect(
      feed([{ current: 2 }, { current: 2 }, { current: 1, stageRun: stageRun(2, "rest", { phase }) }]),
    ).toBeUndefined();
  });

  test("that had assigned nothing when it was suspended lets another in, and one sealed since does not", () => {
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
    ["a freeze, lets another in", { Waiting: 2, Succeeded: 1 }, 0, newest],
    ["a freeze or a worker that does nothing, lets another in", { Waiting: 2, Assigned: 1 }, 1, newest],
    ["a freeze or for one that changes, keeps it", { Waiting: 2, Assigned: 1 }, 0, none],
    ["a freeze or its turn, keeps it", { Waiting: 3 }, 0, none],
    ["a freeze or its rendering, keeps it", { Waiting: 2, Rendering: 1 }, 0, none],
  ])("of which everybody who is left waits for %s", (_what, counts, stuck, fed) => {
    const held = stageRun(2, "canary", { counts: { Assigned: 0, ...counts }, frozen: { as: "", by: { inc: [0, 1] } } });
    const stages = [{ current: 1, stageRun: held }, { current: 1 }, { current: 1 }];
    const found = new Map([[stageRunKey(held), stuck]]);
    expect(feed(stages, { isNew: true, stuck: found })).toEqual(fed);
    expect(feed(stages, { isNew: true, stuck: found, supersede: "finish" })).toEqual(fed);
  });

  test("gives way to a farewell, stage by stage", () => {
    const updatingTo = [{ current: 1, stageRun: stageRun(2, "canary") }, { current: 1 }, { current: 1 }];
    expect(feed(updatingTo, { isNew: true, deletion: true })).toEqual(newest);
    const later = [{ current: 3 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }];
    expect(feed(later, { deletion: true })).toEqual({ stage: 1, rollout: 3 });
  });
});

describe("several contents under way", () => {
  test("go through one stage each", () => {
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
      "one goes through a later stage",
      [{ current: 2 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }],
      none,
    ],
    ["one is between two stages", [{ current: 2 }, { current: 2 }, { current: 1 }], { stage: 2, rollout: 2 }],
    [
      "one is to follow a stalled one",
      [{ current: 3 }, { current: 3 }, { current: 1, stageRun: stageRun(2, "rest", { phase: "Halted" }) }],
      { stage: 2, rollout: 3 },
    ],
    [
      "one is stalled",
      [{ current: 2 }, { current: 2 }, { current: 1, stageRun: stageRun(2, "rest", { phase: "Halted" }) }],
      newest,
    ],
    ["one is through", [{ current: 2 }, { current: 2 }, { current: 2 }], newest],
  ])("with supersede: finish the next is taken only when none is in flight: %s", (_name, stages, fed) => {
    expect(feed(stages, { isNew: true, supersede: "finish" })).toEqual(fed);
  });

  test("a farewell waits for none of them", () => {
    const stages = [{ current: 2 }, { current: 1, stageRun: stageRun(2, "early") }, { current: 1 }];
    expect(feed(stages, { isNew: true, supersede: "finish", deletion: true })).toEqual(newest);
  });
});

test.each<[string, readonly Standing[], boolean]>([
  ["every stage is on the newest", [{ current: 2 }, { current: 2 }], true],
  ["one is not", [{ current: 2 }, { current: 1 }], false],
  ["something goes through one", [{ current: 2 }, { current: 2, stageRun: stageRun(2, "early") }], false],
])("all is through when %s: that is %s", (_name, stages, is) => {
  expect(isThrough(standing(stages, { last: 2 }).rolloutState)).toBe(is);
});

describe("stages are known by their names", () => {
  const current = (name: string, rollout?: number) =>
    stageRecordOf(name, rollout === undefined ? {} : { current: rollout });
  const named = (before: readonly StageRecord[], ...names: string[]) =>
    stagesNamed({ stages: before, last: 0 }, names, { members: new Map() }).map((stage) => [stage.name, stage.current]);

  test.each<[string, readonly StageRecord[], readonly string[], readonly (readonly [string, number | undefined])[]]>([
    [
      "the first ones are on nothing",
      [],
      ["canary", "rest"],
      [
        ["canary", undefined],
        ["rest", undefined],
      ],
    ],
    [
      "one in front is on what comes after it",
      [current("rest", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "one between is on what comes after it",
      [current("canary", 5), current("rest", 3)],
      ["canary", "early", "rest"],
      [
        ["canary", 5],
        ["early", 3],
        ["rest", 3],
      ],
    ],
    [
      "one between is on what the very next is on, and not the last",
      [current("canary", 5), current("early", 4), current("rest", 3)],
      ["canary", "middle", "early", "rest"],
      [
        ["canary", 5],
        ["middle", 4],
        ["early", 4],
        ["rest", 3],
      ],
    ],
    ["one that goes takes nothing with it", [current("canary", 5), current("rest", 3)], ["rest"], [["rest", 3]]],
    [
      "another order is no other stage, and none is on more than the one before it",
      [current("canary", 5), current("early", 4), current("rest", 3)],
      ["early", "canary", "rest"],
      [
        ["early", 4],
        ["canary", 4],
        ["rest", 3],
      ],
    ],
    [
      "a last one of another name is on what the last one was",
      [current("canary", 5), current("rest", 3)],
      ["canary", "others"],
      [
        ["canary", 5],
        ["others", 3],
      ],
    ],
    [
      "all of other names are on what all have",
      [current("all", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "as long as nothing has passed there is nothing to be on",
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
      "whose clusters come from one that is behind are on what that is on",
      { canary: 3 },
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "whose clusters come from nowhere stay on what they are on",
      {},
      [
        ["canary", 5],
        ["rest", 3],
      ],
    ],
    [
      "whose clusters have passed nothing are on nothing",
      { canary: 0 },
      [
        ["canary", undefined],
        ["rest", undefined],
      ],
    ],
  ])("those %s", (_what, verified, after) => {
    const stages = [current("canary", 5), current("rest", 3)];
    const found = stagesNamed({ stages, last: 5 }, ["canary", "rest"], {
      members: new Map(),
      verified: new Map(Object.entries(verified)),
    });
    expect(found.map((stage) => [stage.name, stage.current])).toEqual(after);
  });

  test("and keep what is under way in them; how many members they have is new", () => {
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
