import { describe, expect, test } from "vitest";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { waitOf } from "#shared/fleet/rollout/decide.ts";
import type { Deciding, Known } from "#shared/fleet/rollout/facts.ts";
import {
  type CatchUpWait,
  frozenAs,
  heldAs,
  heldOf,
  isEachStopped,
  isFull,
  isStopped,
  stoppedCatchUps,
} from "#shared/fleet/rollout/holding.ts";
import type { FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import type { CatchUpsHeld, RolloutStateRow, StageRecord } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf } from "#test/support/rollout-state-rows.ts";
import { groupRow } from "#test/unit/cli/format/overview-fixture.ts";

const now = new Date("2026-11-21T08:00:00.000Z");
const freeze = { name: "inc", by: "ana", at: now.toISOString(), reason: "incident" };
const row = groupRow({
  spec: syncGroupSpec.parse({
    clusters: { all: true },
    templates: [{ name: "web", source: "app" }],
    rollout: {
      maxFailures: 1,
      stages: [
        { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } }, maxConcurrent: 2 },
        { name: "rest" },
      ],
    },
  }),
});

const going = [stageRecordOf("canary", { members: 4 }), stageRecordOf("rest", { members: 4 })];
const stopped = [stageRecordOf("canary", { members: 4, failedCatchUps: 2 }), stageRecordOf("rest", { members: 4 })];

interface Case {
  readonly stages?: readonly StageRecord[];
  readonly state?: Partial<RolloutStateRow>;
  readonly freezes?: FreezeState["freezes"];
}

/** Only the fields that the causes depend on. */
function deciding({ stages = going, state = {}, freezes = [] }: Case = {}): Deciding {
  const rolloutState = rolloutStateOf(stages, state);
  const known = {
    row,
    rolloutState,
    freezeState: { freezes, lifted: [] },
    windows: [],
    cordons: [],
  } as unknown as Known;
  return { known, rolloutState, now, at: now.toISOString(), rollout: () => expect.unreachable() };
}

describe("the digest of what freezes", () => {
  const before = frozenAs(deciding());

  test("the digest is the same without and with a freeze whose time has passed", () => {
    expect(frozenAs(deciding({ freezes: [{ ...freeze, until: "2026-11-21T07:59:59.000Z" }] }))).toBe(before);
  });

  test.each<[string, Case]>([
    ["a freeze in force", { freezes: [freeze] }],
    ["another list of members", { state: { membersVersion: 2 } }],
  ])("the digest is another one with %s", (_what, change) => {
    expect(frozenAs(deciding(change))).not.toBe(before);
  });
});

describe("the digest of what holds catch-ups back", () => {
  const before = heldAs(deciding());

  /** Legend: what changes, the change, and whether the catch-ups are read again. */
  test.each<[string, Case, boolean]>([
    ["nothing changes", {}, false],
    [
      "the members of a stage change in number alone",
      { stages: going.with(0, stageRecordOf("canary", { members: 5 })) },
      false,
    ],
    ["a freeze begins", { freezes: [freeze] }, true],
    ["a stage passes a rollout", { stages: going.with(0, stageRecordOf("canary", { members: 4, current: 1 })) }, true],
    ["a stage is stopped", { stages: stopped }, true],
    ["a stage is full", { stages: going.with(0, stageRecordOf("canary", { members: 4, changing: 2 })) }, true],
    [
      "a stage without a bound changes clusters",
      { stages: going.with(1, stageRecordOf("rest", { members: 4, changing: 2 })) },
      false,
    ],
    ["a cluster cannot be read", { state: { unreadable: ["c1"] } }, true],
  ])("when %s", (_what, change, isAnother) => {
    expect(heldAs(deciding(change)) !== before).toBe(isAnother);
  });

  test("the digest is another one for each rollout that a stage passes", () => {
    const digests = [1, 2].map((passed) => heldAs(deciding({ stages: [stageRecordOf("rest", { current: passed })] })));
    expect(new Set(digests).size).toBe(2);
  });

  test("the digest follows the changes of this step, not the rollout state that was read", () => {
    const changed = rolloutStateOf(going.with(0, stageRecordOf("canary", { members: 4, changing: 2 })));
    expect(heldAs({ ...deciding(), rolloutState: changed })).not.toBe(before);
  });
});

describe("a stage's own bound", () => {
  /** Legend: the stage, the clusters that change in it, those that catch up, the base of a percentage, whether it is full. */
  test.each<[string, string, StageRecord, boolean]>([
    ["below its bound", "canary", stageRecordOf("canary", { changing: 1 }), false],
    ["at its bound", "canary", stageRecordOf("canary", { changing: 1, catchingUp: 1 }), true],
    ["above its bound", "canary", stageRecordOf("canary", { changing: 3 }), true],
    ["without a bound", "rest", stageRecordOf("rest", { changing: 900 }), false],
    ["that the rollout state lacks", "gone", stageRecordOf("canary", { changing: 3 }), false],
    ["that the rollout state lacks yet", "canary", stageRecordOf("rest", { changing: 900 }), false],
  ])("a stage %s", (_what, name, stage, is) => {
    expect(isFull(deciding({ stages: [stage] }), name)).toBe(is);
  });

  test("a percentage is of the given number, or else of the members", () => {
    const [canary, rest] = row.spec.rollout.stages;
    if (canary === undefined || rest === undefined) throw new Error("there are two stages");
    const rollout = { ...row.spec.rollout, stages: [{ ...canary, maxConcurrent: "50%" as const }, rest] };
    const { known, rolloutState } = deciding({ stages: [stageRecordOf("canary", { members: 4, changing: 2 })] });
    const half = { known: { ...known, row: { ...row, spec: { ...row.spec, rollout } } }, rolloutState };
    expect(isFull(half, "canary")).toBe(true);
    expect(isFull(half, "canary", 6)).toBe(false);
  });
});

describe("catch-ups that are stopped", () => {
  /** Legend: the members, the failed catch-ups, and whether no other catch-up is tried. */
  test.each([
    [4, 0, false],
    [4, 1, false],
    [4, 2, true],
    [0, 2, true],
  ])("with %i members and %i failed catch-ups", (members, failedCatchUps, is) => {
    expect(isStopped(deciding().known, stageRecordOf("rest", { members, failedCatchUps }))).toBe(is);
  });

  test("each stage is stopped only when none of them may go on", () => {
    expect(isEachStopped(deciding().known)).toBe(false);
    expect(isEachStopped(deciding({ stages: stopped }).known)).toBe(false);
    expect(isEachStopped(deciding({ stages: stopped.slice(0, 1) }).known)).toBe(true);
  });

  const catchUps = { waiting: 5, changing: 0, failed: 0 };
  const held = (as: string): CatchUpsHeld => ({
    as,
    holds: [
      { cause: "freeze", clusters: 2 },
      { cause: "bound", clusters: 1 },
    ],
  });

  /** Legend: the stages, what was held back, and the number of stopped catch-ups. */
  test.each<[string, readonly StageRecord[], ((as: string) => CatchUpsHeld) | undefined, number]>([
    ["all when each stage is stopped", stopped.slice(0, 1), undefined, 5],
    ["none when no stage is stopped", going, held, 0],
    ["none when they were not checked", stopped, undefined, 0],
    ["none when something has changed since they were checked", stopped, () => held("other"), 0],
    ["those that no other cause holds back", stopped, held, 2],
  ])("the waiting catch-ups that are stopped are %s", (_what, stages, heldNow, count) => {
    const as = heldAs(deciding({ stages }));
    const state = { catchUps, ...(heldNow === undefined ? {} : { catchUpsHeld: heldNow(as) }) };
    expect(stoppedCatchUps(deciding({ stages, state }))).toBe(count);
  });
});

describe("the causes that hold catch-ups back", () => {
  const frozen = (name: string): CatchUpWait => ({ cause: "freeze", name });

  test("waits are counted by cause and name, in one order, and others are left out", () => {
    const waits: readonly CatchUpWait[] = [
      frozen("b"),
      "asked",
      frozen("a"),
      "others",
      { cause: "rendering" },
      frozen("b"),
    ];
    expect(heldOf(waits, "as")).toEqual({
      as: "as",
      holds: [
        { cause: "freeze", name: "a", clusters: 1 },
        { cause: "freeze", name: "b", clusters: 2 },
        { cause: "rendering", clusters: 2 },
      ],
    });
  });

  test("catch-ups that wait for a worker are read again, whatever the digest is", () => {
    expect(heldOf([{ cause: "worker" }], "as")).toEqual({ holds: [{ cause: "worker", clusters: 1 }] });
    expect(heldOf([], "as")).toEqual({ as: "as", holds: [] });
  });

  test.each<[string, Parameters<typeof waitOf>[0], CatchUpWait | undefined]>([
    ["held back", { do: "hold", cause: "freeze", name: "inc", requests: [] }, { cause: "freeze", name: "inc" }],
    ["held back without a name", { do: "hold", cause: "worker", requests: [] }, { cause: "worker" }],
    ["that has requested its rendering", { do: "hold", cause: "rendering", requests: [{} as never] }, "asked"],
    ["of a cluster that cannot be read", { do: "away", reason: "r" }, "others"],
    ["that is unchanged", { do: "unchanged", reason: "r" }, undefined],
  ])("the wait of a catch-up %s", (_what, step, wait) => {
    expect(waitOf(step)).toStrictEqual(wait);
  });
});
