import { describe, expect, test } from "vitest";
import {
  barredIn,
  catchUpRollout,
  formerAfter,
  hadBefore,
  isAhead,
  isCaughtUp,
  isThrough,
  keepsNewer,
  namedRollouts,
  newerBefore,
  newestOf,
  nextFor,
  nextStageOf,
  offeredTo,
  stagesNamed,
  verifiedBy,
  withPassed,
} from "#shared/fleet/rollout/order.ts";
import type { RolloutStateRow, StageRecord, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf } from "#test/support/rollout-state-rows.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

interface Stands {
  readonly current?: number;
  readonly updatingTo?: number;
  readonly bar?: NonNullable<StageRecord["bar"]>;
}

/** The stages canary, early and rest, as many as are given. @param last - the newest rollout. */
function state(last: number, stages: readonly Stands[], more: Partial<RolloutStateRow> = {}): RolloutStateRow {
  const records = stages.map(({ updatingTo, ...stage }, index) => {
    const name = ["canary", "early", "rest"][index] ?? "";
    const ref = updatingTo === undefined ? {} : { updatingTo: { rollout: updatingTo, stage: name, snapshot: 1 } };
    return stageRecordOf(name, { ...stage, ...ref });
  });
  const ledger = last === 0 ? [] : [{ number: last, identity: "newest", revision: "r", at: "" }];
  return rolloutStateOf(records, { last, ledger, ...more });
}

const assigned = (...rollouts: number[]) => rollouts.map((rollout) => syncRowOf("c", { desired: { rollout } }));

test.each<[string, RolloutStateRow, boolean]>([
  ["every stage has the newest rollout", state(2, [{ current: 2 }, { current: 2 }]), true],
  ["one stage has an older rollout", state(2, [{ current: 2 }, { current: 1 }]), false],
  ["one stage is updating", state(2, [{ current: 2 }, { current: 2, updatingTo: 2 }]), false],
])("all rollouts are finished when %s: %s", (_name, rolloutState, is) => {
  expect(isThrough(rolloutState)).toBe(is);
});

describe("the rollout that reaches a stage", () => {
  const bar = { stage: "early", above: 3, upTo: 5 };
  /** Legend: the newest rollout, the stages, and for each stage what it is offered and what it takes next. */
  test.each<[string, RolloutStateRow, offered: readonly number[], next: readonly (number | undefined)[]]>([
    ["the first stage is offered the newest rollout", state(4, [{ current: 3 }]), [4], [4]],
    [
      "a stage is offered what the stage before it has passed",
      state(4, [{ current: 4 }, { current: 2 }]),
      [4, 4],
      [undefined, 4],
    ],
    [
      "a stage is not offered what only updates before it",
      state(4, [{ current: 3, updatingTo: 4 }, { current: 3 }]),
      [4, 3],
      [undefined, undefined],
    ],
    [
      "a stage takes nothing older than it has",
      state(4, [{ current: 2, updatingTo: 3 }, { current: 4 }]),
      [4, 2],
      [4, undefined],
    ],
    [
      "a stage takes nothing that it updates to",
      state(4, [{ current: 4 }, { current: 3, updatingTo: 4 }]),
      [4, 4],
      [undefined, undefined],
    ],
    [
      "a bar holds back what a removed stage had not passed",
      state(5, [{ current: 5 }, { current: 2, bar }]),
      [5, 3],
      [undefined, 3],
    ],
    ["a bar lets a later rollout pass", state(6, [{ current: 6 }, { current: 2, bar }]), [6, 6], [undefined, 6]],
    ["a bar lets an earlier rollout pass", state(6, [{ current: 3 }, { current: 2, bar }]), [6, 3], [6, 3]],
  ])("%s", (_what, rolloutState, offered, next) => {
    const indexes = [...rolloutState.stages.keys()];
    expect(indexes.map((index) => offeredTo(rolloutState, index))).toEqual(offered);
    expect(indexes.map((index) => nextFor(rolloutState, index))).toEqual(next);
  });

  test("a stage that is barred is named with the removed stage and the rollout that it does not take", () => {
    const barred = state(5, [{ current: 5 }, { current: 3, bar }]);
    expect(barredIn(barred)).toEqual({ stage: "early", removed: "early", rollout: 5 });
    expect(barredIn(state(5, [{ current: 5 }, { current: 5, bar }]))).toBeUndefined();
    expect(barredIn(state(5, [{ current: 3 }, { current: 3, bar }]))).toBeUndefined();
  });

  test("a stage run that an edit put ahead has caught up when the stage before has passed its rollout, and no newer one", () => {
    expect(isCaughtUp(state(4, [{ current: 3 }, { updatingTo: 4 }]), 1)).toBe(false);
    expect(isCaughtUp(state(4, [{ current: 4 }, { updatingTo: 4 }]), 1)).toBe(true);
    expect(isCaughtUp(state(5, [{ current: 5 }, { updatingTo: 4 }]), 1)).toBe(false);
  });

  test("an idle stage waits for the nearest stage before it that updates to something newer", () => {
    const rolloutState = state(6, [{ current: 5, updatingTo: 6 }, { current: 4, updatingTo: 5 }, { current: 4 }]);
    expect(newerBefore(rolloutState, 2)?.name).toBe("early");
    expect(newerBefore(state(6, [{ current: 4, updatingTo: 4 }, { current: 4 }]), 1)).toBeUndefined();
  });

  test("a rollout waits for the first stage that has nothing as new, where the stage before has passed it", () => {
    const { stages } = state(6, [{ current: 5 }, { current: 5 }, { current: 4 }]);
    expect(nextStageOf(5, stages)?.name).toBe("rest");
    expect(nextStageOf(4, stages)).toBeUndefined();
  });
});

describe("a rollback is a new number with an older plan", () => {
  // 118 was good and 120 was bad; 121 has the plan of 118.
  const rolledBack = state(121, [{ current: 121 }, { current: 121 }, { current: 118 }]);

  test("no stage takes again what the rollback took back", () => {
    expect(nextFor(rolledBack, 0)).toBeUndefined();
    expect(nextFor(rolledBack, 1)).toBeUndefined();
    expect(nextFor(state(121, [{ current: 120 }, { current: 118 }]), 0)).toBe(121);
  });

  test("a cluster with the rollout that was taken back gets the rollback, in whatever stage", () => {
    const [canary, , rest] = rolledBack.stages;
    if (canary === undefined || rest === undefined) throw new Error("there are three stages");
    expect(catchUpRollout(rolledBack, canary, 120)).toBe(121);
    expect(catchUpRollout(rolledBack, rest, 120)).toBe(121);
    expect(keepsNewer(rolledBack, { has: 120, stage: "canary", rollout: 121 })).toBe(false);
    expect(isAhead(canary, { syncs: assigned(120), targets: [] })).toBe(false);
  });

  test("a cluster that has the rollback keeps it in a stage that has something older", () => {
    expect(keepsNewer(rolledBack, { has: 121, stage: "rest", rollout: 118 })).toBe(true);
  });
});

describe("the rollout that a cluster may have", () => {
  const rolloutState = state(6, [{ current: 5 }, { current: 4 }, { current: 2 }]);
  const [, , rest] = rolloutState.stages;

  test.each([
    ["has nothing gets its stage's current rollout", 0, 2],
    ["has its stage's current rollout keeps it", 2, 2],
    ["has what two stages have passed gets the older of their rollouts", 3, 4],
    ["has the newest rollout that any stage has passed keeps it", 5, 5],
    ["has what no stage has passed goes back to its stage's current rollout", 6, 2],
  ])("a cluster that joins and %s", (_what, has, rollout) => {
    if (rest === undefined) throw new Error("there are three stages");
    expect(catchUpRollout(rolloutState, rest, has)).toBe(rollout);
  });

  test("a cluster that joins the first stage keeps what a removed stage had passed", () => {
    const former = state(7, [{ current: 5 }, { current: 4 }], { former: 6 });
    const [canary] = former.stages;
    if (canary === undefined) throw new Error("there are two stages");
    expect(catchUpRollout(former, canary, 6)).toBe(6);
    expect(keepsNewer(former, { has: 6, stage: "canary", rollout: 5 })).toBe(true);
    expect(keepsNewer(former, { has: 7, stage: "canary", rollout: 5 })).toBe(false);
  });

  test("a target keeps something newer only when another stage has passed it", () => {
    expect(keepsNewer(rolloutState, { has: 4, stage: "rest", rollout: 3 })).toBe(true);
    expect(keepsNewer(rolloutState, { has: 4, stage: "rest", rollout: 4 })).toBe(false);
    expect(keepsNewer(rolloutState, { has: 5, stage: "canary", rollout: 4 })).toBe(false);
  });

  test("the newest rollout of a cluster is that of its applied Syncs", () => {
    expect(newestOf(assigned(3, 5, 4))).toBe(5);
    expect(newestOf([])).toBe(0);
    expect(newestOf([syncRowOf("c", { desired: { rollout: 9, action: "delete" } })])).toBe(0);
  });

  test("a cluster that was assigned what its stage updates to does not catch up with an older rollout", () => {
    const stageRun = { rollout: 5, stage: "early", snapshot: 1 };
    const [, early] = state(5, [{ current: 5 }, { current: 4, updatingTo: 5 }]).stages;
    if (early === undefined) throw new Error("there are two stages");
    const target = (of: Partial<TargetRow>): readonly TargetRow[] => [
      { stageRun, order: 0, cluster: "c", attempts: {}, ...of } as TargetRow,
    ];
    const isAheadWith = (rollout: number, targets: readonly TargetRow[] = []) =>
      isAhead(early, { syncs: assigned(rollout), targets });
    expect(isAheadWith(5)).toBe(true);
    expect(isAheadWith(6)).toBe(false);
    expect(isAheadWith(4)).toBe(false);
    expect(isAheadWith(4, target({ state: "Unchanged" }))).toBe(true);
    expect(isAheadWith(4, target({ state: "Failed", attempts: { web: 2 } }))).toBe(true);
    expect(isAheadWith(4, target({ state: "Failed" }))).toBe(false);
    expect(isAheadWith(4, target({ state: "Skipped", attempts: { web: 2 } }))).toBe(false);
    expect(isAheadWith(4, target({ state: "Unchanged", stageRun: { ...stageRun, snapshot: 2 } }))).toBe(false);
    expect(isAhead({ current: 4 }, { syncs: assigned(5), targets: [] })).toBe(false);
  });
});

describe("a stage run that passes", () => {
  const passed = { rollout: 5, stage: "early", snapshot: 1 };

  test("its rollout is the stage's current one, and other stages stay as they are", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3, updatingTo: 5 }]);
    const { stages: after } = withPassed({ stages }, "early", passed);
    expect(after[1]).toMatchObject({ current: 5, passed });
    expect(after[1]).not.toHaveProperty("updatingTo");
    expect(after[0]).toEqual(stages[0]);
  });

  test("a bar stays until a later rollout passes", () => {
    const { stages } = state(5, [{ current: 5 }, { updatingTo: 5, bar: { stage: "old", above: 3, upTo: 5 } }]);
    expect(withPassed({ stages }, "early", passed).stages[1]).toHaveProperty("bar");
    expect(withPassed({ stages }, "early", { ...passed, rollout: 6 }).stages[1]).not.toHaveProperty("bar");
  });

  test("the rollout of a removed stage is forgotten when every stage has something as new", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3, updatingTo: 5 }]);
    expect(withPassed({ stages, former: 5 }, "early", passed)).not.toHaveProperty("former");
    expect(withPassed({ stages, former: 6 }, "early", passed)).toHaveProperty("former", 6);
  });
});

describe("stages that are removed or renamed", () => {
  test("the newest rollout that a removed stage had passed is remembered", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3 }, {}]);
    expect(formerAfter({}, stages)).toBe(5);
    expect(formerAfter({ former: 7 }, stages)).toBe(7);
    expect(formerAfter({}, [])).toBe(0);
  });

  test("a slot of a removed stage had what such a stage had passed", () => {
    const rolloutState = state(5, [{ current: 5 }], { former: 4 });
    expect(hadBefore(rolloutState, "canary")).toBe(5);
    expect(hadBefore(rolloutState, "gone")).toBe(4);
  });

  test("every rollout that a stage names is kept", () => {
    const bar = { stage: "old", above: 2, upTo: 9 };
    const rolloutState = state(9, [{ current: 5, updatingTo: 8 }, { bar }, {}], { former: 1 });
    expect([...namedRollouts(rolloutState)].sort()).toEqual([1, 2, 5, 8]);
  });

  test("a stage has verified at most the newest current rollout of the stages that its clusters come from", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3 }]);
    const before = [
      { cluster: "a", stage: "canary" },
      { cluster: "b", stage: "early" },
      { cluster: "c", stage: "early" },
    ];
    const members = [
      { cluster: "a", stage: "rest" },
      { cluster: "b", stage: "rest" },
      { cluster: "c", stage: "first" },
      { cluster: "new", stage: "other" },
    ];
    expect(verifiedBy(members, before, { stages })).toEqual(
      new Map([
        ["rest", 5],
        ["first", 3],
      ]),
    );
  });
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
