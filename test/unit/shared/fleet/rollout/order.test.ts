import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import {
  barredIn,
  catchUpRollout,
  deletionFor,
  formerAfter,
  hadBefore,
  isAfter,
  isAhead,
  isAsNewAs,
  isCaughtUp,
  isThrough,
  keepsNewer,
  namedRollouts,
  newerBefore,
  newestOf,
  nextFor,
  nextForAll,
  nextStageOf,
  offeredTo,
  stagesNamed,
  verifiedBy,
  withPassed,
} from "#shared/fleet/rollout/order.ts";
import type { LedgerEntry, RolloutStateRow, StageRecord, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
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

function entry(number: number, passed?: true): LedgerEntry {
  return { number, identity: `plan ${number}`, revision: "r", at: "", ...(passed && { passed }) };
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
    [
      "a bar gives nothing newer than what reaches its stage",
      state(6, [{ current: 2 }, { current: 1, bar }]),
      [6, 2],
      [6, 2],
    ],
  ])("%s", (_what, rolloutState, offered, next) => {
    const indexes = [...rolloutState.stages.keys()];
    expect(indexes.map((index) => offeredTo(rolloutState, index))).toEqual(offered);
    expect(indexes.map((index) => nextFor(rolloutState, index))).toEqual(next);
  });

  /** Legend: the stages of a deletion 5, and what each of them takes. */
  test.each<[string, RolloutStateRow, readonly (number | undefined)[]]>([
    ["reaches the first stage", state(5, [{ current: 4 }, { current: 4 }]), [5, undefined]],
    ["reaches the next stage", state(5, [{ current: 5 }, { current: 4 }]), [undefined, 5]],
    ["passes a bar", state(5, [{ current: 5 }, { current: 2, bar }]), [undefined, 5]],
    ["is what a stage updates to", state(5, [{ current: 5 }, { current: 4, updatingTo: 5 }]), [undefined, undefined]],
    ["is the only one that a stage takes", state(5, [{ current: 4 }, { current: 3 }]), [5, undefined]],
    ["is not the newest one yet", { ...state(4, [{ current: 3 }]), last: 5 }, [undefined]],
  ])("a deletion that %s", (_what, rolloutState, taken) => {
    expect([...rolloutState.stages.keys()].map((index) => deletionFor(rolloutState, index))).toEqual(taken);
  });

  test("the oldest kept rollout that some stage lacks is next for all", () => {
    const entry = (number: number) => ({ number, identity: `${number}`, revision: "r", at: "" });
    const ledger = [5, 4, 3, 2].map(entry);
    const nextWith = (...stages: readonly Stands[]) => nextForAll(state(5, stages, { ledger }))?.number;
    expect(nextWith({ current: 5 }, { current: 3 })).toBe(4);
    expect(nextWith({ current: 5 }, { current: 5 })).toBeUndefined();
    expect(nextWith({ current: 5 }, {})).toBe(2);
  });

  test("no stage lacks a rejected rollout or a rollback, so that they are next for nobody", () => {
    const entry = (number: number, rollback?: number) => ({
      number,
      identity: `${number}`,
      revision: "r",
      at: "",
      ...defined({ rollback }),
    });
    const rejected = [{ rollout: 3, by: "ana", at: "" }];
    const nextWith = (ledger: readonly LedgerEntry[]) =>
      nextForAll({ ...state(5, [{ current: 5 }, { current: 2 }], { ledger }), rejected })?.number;
    expect(nextWith([entry(4, 2), entry(3), entry(2)])).toBeUndefined();
    expect(nextWith([entry(5), entry(4, 2), entry(3), entry(2)])).toBe(5);
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
    expect(newerBefore(state(6, [{ current: 4 }, { current: 4, updatingTo: 6 }]), 0)).toBeUndefined();
  });

  test("a rollout waits for the first stage that has nothing as new, where the stage before has passed it", () => {
    const { stages } = state(6, [{ current: 5 }, { current: 5 }, { current: 4 }]);
    expect(nextStageOf(5, stages)?.name).toBe("rest");
    expect(nextStageOf(4, stages)).toBeUndefined();
    expect(nextStageOf(6, stages)?.name).toBe("canary");
    expect(nextStageOf(6, state(7, [{ current: 7 }, { current: 5 }]).stages)).toBeUndefined();
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

  /** Legend: what the stages and a removed one have passed, the stage, what the cluster has, and what it gets. */
  test.each<[string, RolloutStateRow, stage: number, has: number, rollout: number]>([
    [
      "an older rollout than its stage's gets that of its stage, although a removed stage had passed the older one",
      state(6, [{ current: 5 }, { current: 2 }], { former: 1 }),
      1,
      1,
      2,
    ],
    [
      "what no stage has passed, newer than the stage before, goes back",
      state(7, [{ current: 6 }, { current: 4 }, { current: 2 }]),
      2,
      5,
      2,
    ],
    [
      "what a removed stage had passed keeps it, although the stage before has passed something newer",
      state(7, [{ current: 6 }, { current: 5 }, { current: 2 }], { former: 4 }),
      2,
      4,
      4,
    ],
    [
      "what only the ledger knows as passed keeps it",
      state(7, [{ current: 6 }, { current: 2 }, { current: 2 }], {
        ledger: [entry(7), entry(6), entry(5), entry(4, true)],
      }),
      2,
      4,
      4,
    ],
    [
      "what the ledger knows, and no stage has passed, goes back",
      state(7, [{ current: 6 }, { current: 2 }, { current: 2 }], {
        ledger: [entry(7), entry(6), entry(5), entry(4, true)],
      }),
      2,
      5,
      2,
    ],
    [
      "what only the ledger knows as passed gets the current rollout that the stage before has passed, when that is newer",
      state(7, [{ current: 6 }, { current: 5 }, { current: 2 }], { ledger: [entry(4, true)] }),
      2,
      4,
      5,
    ],
    [
      "an older rollout than a removed stage had passed gets that in the first stage",
      state(5, [{ current: 2 }], { former: 4 }),
      0,
      3,
      4,
    ],
  ])("a cluster with %s", (_what, from, index, has, rollout) => {
    const stage = from.stages[index];
    if (stage === undefined) throw new Error("there is no such stage");
    expect(catchUpRollout(from, stage, has)).toBe(rollout);
  });

  test("an assignment is after an older rollout, and as new as its own", () => {
    const [sync] = assigned(5);
    if (sync === undefined) throw new Error("one is assigned");
    expect([4, 5, 6].map((number) => isAfter(sync, number))).toEqual([true, false, false]);
    expect([4, 5, 6].map((number) => isAsNewAs(sync, number))).toEqual([true, true, false]);
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
  const ledger = [entry(5)];
  const passed = { rollout: 5, stage: "early", snapshot: 1 };

  test("its rollout is the stage's current one, and other stages stay as they are", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3, updatingTo: 5 }]);
    const { stages: after } = withPassed({ stages, ledger }, "early", passed);
    expect(after[1]).toMatchObject({ current: 5, passed });
    expect(after[1]).not.toHaveProperty("updatingTo");
    expect(after[0]).toEqual(stages[0]);
  });

  test("the ledger has from then on that a stage has passed it", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3, updatingTo: 5 }]);
    const { ledger: after } = withPassed({ stages, ledger: [entry(6), entry(5), entry(4, true)] }, "early", passed);
    expect(after.map(({ number, passed }) => [number, passed])).toEqual([
      [6, undefined],
      [5, true],
      [4, true],
    ]);
  });

  test("a bar stays until a later rollout passes", () => {
    const { stages } = state(5, [{ current: 5 }, { updatingTo: 5, bar: { stage: "old", above: 3, upTo: 5 } }]);
    expect(withPassed({ stages, ledger }, "early", passed).stages[1]).toHaveProperty("bar");
    expect(withPassed({ stages, ledger }, "early", { ...passed, rollout: 6 }).stages[1]).not.toHaveProperty("bar");
  });

  test("the rollout of a removed stage is forgotten when every stage has something as new", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3, updatingTo: 5 }]);
    expect(withPassed({ stages, ledger, former: 5 }, "early", passed)).not.toHaveProperty("former");
    expect(withPassed({ stages, ledger, former: 6 }, "early", passed)).toHaveProperty("former", 6);
    expect(withPassed({ stages, ledger, former: 4 }, "early", { ...passed, rollout: 3 })).toHaveProperty("former", 4);
  });
});

describe("stages that are removed or renamed", () => {
  test("the newest rollout that a removed stage had passed is remembered", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3 }, {}]);
    expect(formerAfter({ stages }, [])).toBe(5);
    expect(formerAfter({ stages }, stages.slice(0, 1))).toBe(3);
    expect(formerAfter({ stages, former: 7 }, [])).toBe(7);
    expect(formerAfter({ stages }, stages)).toBe(0);
  });

  test("the rollout that a stage had passed is remembered when its name gets other clusters", () => {
    const { stages } = state(5, [{ current: 5 }, { current: 3 }]);
    const [first] = stages;
    expect(formerAfter({ stages }, [{ ...first, current: 3 }, ...stages.slice(1)] as typeof stages)).toBe(5);
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

  const [a, b, c, d] = [current("a", 4), current("b", 3), current("c", 2), current("d", 1)];
  const bar = (above: number) => ({ stage: "b", above, upTo: 5 });

  /** Legend: the stages before, the names afterwards, and the bars of the stages; the newest rollout is 5. */
  test.each<[string, readonly StageRecord[], readonly string[], readonly StageRecord["bar"][]]>([
    ["a removed stage bars the stage after it only", [a, b, c, d], ["a", "c", "d"], [undefined, bar(3), undefined]],
    [
      "a removed stage bars the stages in its place and the next one",
      [a, b, c, d],
      ["a", "new", "c", "d"],
      [undefined, bar(3), bar(3), undefined],
    ],
    ["a removed first stage bars the stage after it", [b, c, d], ["c", "d"], [bar(3), undefined]],
    ["a removed last stage bars nothing", [a, b], ["a"], [undefined]],
    ["a stage that remains bars nothing", [a, b, c], ["a", "b", "c"], [undefined, undefined, undefined]],
    [
      "a removed stage with the newest rollout bars nothing",
      [current("a", 5), current("b", 5), c],
      ["a", "c"],
      [undefined, undefined],
    ],
    ["a removed stage bars the new stages that replace all later ones", [a, b, c], ["a", "new"], [undefined, bar(3)]],
    [
      "a removed stage bars the next stage in the new order",
      [a, b, c, d],
      ["c", "a", "d"],
      [undefined, undefined, bar(3)],
    ],
    [
      "a removed stage lets no more pass than a stage removed before",
      [a, b, { ...c, current: 1, bar: { stage: "old", above: 2, upTo: 4 } }],
      ["a", "c"],
      [undefined, bar(2)],
    ],
    [
      "a removed stage takes nothing from a stage",
      [a, b, { ...c, bar: { stage: "old", above: 1, upTo: 4 } }],
      ["a", "c"],
      [undefined, bar(2)],
    ],
  ])("%s", (_what, before, names, bars) => {
    const stages = stagesNamed({ stages: before, last: 5 }, names, { members: new Map() });
    expect(stages.map((stage) => stage.bar)).toEqual(bars);
  });

  const updating = (rollout: number, more: Partial<StageRecord> = {}) => ({
    ...c,
    updatingTo: { rollout, stage: "c", snapshot: 1 },
    ...more,
  });

  /** Legend: the stages before, the names afterwards, and whether c's stage run waits for the stage before it. */
  test.each<[string, readonly StageRecord[], readonly string[], true | undefined]>([
    ["a stage is inserted that has not passed its rollout", [a, updating(4)], ["a", "new", "c"], true],
    ["the stage before has passed its rollout", [a, updating(4)], ["a", "c"], undefined],
    ["the stage before has passed something newer", [a, updating(3)], ["a", "c"], undefined],
    ["it waited before", [a, updating(4, { ahead: true })], ["a", "c"], true],
    ["it is in the first stage", [updating(4, { ahead: true })], ["c"], undefined],
    ["it has ended", [a, { ...c, ahead: true }], ["a", "c"], undefined],
  ])("a stage run waits when a stage before it lacks its rollout: %s", (_what, before, names, ahead) => {
    const stages = stagesNamed({ stages: before, last: 4 }, names, { members: new Map() });
    expect(stages.at(-1)?.ahead).toBe(ahead);
  });
});
