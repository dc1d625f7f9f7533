import { describe, expect, test } from "vitest";
import { type Feed, type Feeding, isThrough, nextFeed, stagesNamed } from "#shared/fleet/rollout/feed.ts";
import { legKey, refOf } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { legOfUnit, stageOfUnit, unitOf } from "#test/support/unit-rows.ts";

type Counts = NonNullable<Parameters<typeof legOfUnit>[0]["counts"]>;

/** A leg that has assigned something, unless its counts say otherwise. */
const leg = (
  content: number,
  stage: string,
  more: Omit<Partial<LegRow>, "counts"> & { readonly counts?: Counts } = {},
) => legOfUnit({ content, stage, counts: { Assigned: 1 }, ...more });

interface Standing {
  readonly on?: number;
  readonly leg?: LegRow;
}

/** canary, early and rest, as far as they are said. */
function standing(stages: readonly Standing[], more: Partial<UnitRow> = {}) {
  const named = stages.map(({ on, leg: moving }, index): UnitStage => {
    const name = ["canary", "early", "rest"][index] ?? "";
    return stageOfUnit(name, {
      ...(on === undefined ? {} : { on }),
      ...(moving === undefined ? {} : { moving: refOf(moving) }),
    });
  });
  const legs = stages.flatMap(({ leg: moving }) => moving ?? []);
  const newest = Math.max(0, ...stages.flatMap(({ on = 0, leg: moving }) => [on, moving?.content ?? 0]));
  const last = more.last ?? newest;
  const ledger = last === 0 ? [] : [{ number: last, identity: "newest", revision: "r", at: "" }];
  return { unit: unitOf(named, { last, ledger, ...more }), legs: new Map(legs.map((one) => [legKey(one), one])) };
}

function feed(stages: readonly Standing[], more: Partial<Omit<Feeding, "legs">> & { unit?: Partial<UnitRow> } = {}) {
  const { unit: row, ...feeding } = more;
  const { unit, legs } = standing(stages, row);
  return nextFeed(unit, {
    legs,
    isNew: false,
    supersede: "pipeline",
    stuck: new Map(),
    halting: new Set(),
    passing: new Set(),
    farewell: false,
    ...feeding,
  });
}

const none = undefined;
const newest: Feed = { stage: 0, content: "newest" };
const through = [{ on: 1 }, { on: 1 }, { on: 1 }];

describe("an idle stage", () => {
  test.each<[string, readonly Standing[], boolean, Feed | undefined]>([
    ["takes nothing when all are on the same", through, false, none],
    ["takes what is new, when it is the first", through, true, newest],
    ["takes what the one before it passed", [{ on: 2 }, { on: 1 }, { on: 1 }], false, { stage: 1, content: 2 }],
    ["takes it when it was on nothing", [{ on: 1 }, {}, {}], false, { stage: 1, content: 1 }],
    [
      "takes the newest of what was passed, and not what it missed",
      [{ on: 9 }, { on: 9 }, { on: 4 }],
      false,
      { stage: 2, content: 9 },
    ],
    ["takes nothing older than it is on", [{ on: 1 }, { on: 2 }, { on: 2 }], false, { stage: 0, content: 2 }],
    ["takes nothing that only moves before it", [{ on: 1, leg: leg(2, "canary") }, { on: 1 }, { on: 1 }], false, none],
    ["takes nothing new before anything is wanted", [{}, {}, {}], false, none],
    ["takes the first content", [{}, {}, {}], true, newest],
  ])("%s", (_name, stages, isNew, fed) => {
    expect(feed(stages, { isNew })).toEqual(fed);
  });

  test("takes, as the first, what another one before it was given and had not passed", () => {
    expect(feed([{ on: 1 }], { unit: { last: 3 } })).toEqual({ stage: 0, content: 3 });
    expect(feed([{}], { unit: { last: 3 } })).toEqual({ stage: 0, content: 3 });
  });

  test("takes nothing of an object that had the same name", () => {
    expect(feed([{}], { unit: { last: 3, ledger: [] } })).toBeUndefined();
  });
});

describe("a stage with a leg", () => {
  const stalls = ["Halted", "NothingVerified", "TooManyUnreachable"] as const;

  test("keeps it until it has passed, in the first stage and in the last", () => {
    expect(feed([{ on: 1, leg: leg(2, "canary") }, { on: 1 }, { on: 1 }], { isNew: true })).toBeUndefined();
    expect(feed([{ on: 3 }, { on: 3 }, { on: 1, leg: leg(2, "rest") }])).toBeUndefined();
  });

  test("keeps it while it waits for renderings or slots", () => {
    const waits = leg(2, "canary", { counts: { Waiting: 2, Rendering: 1 } });
    expect(feed([{ on: 1, leg: waits }, { on: 1 }, { on: 1 }], { isNew: true })).toBeUndefined();
  });

  test.each(stalls)("that is %s lets another in, in the first stage and in the last", (phase) => {
    expect(feed([{ on: 1, leg: leg(2, "canary", { phase }) }, { on: 1 }, { on: 1 }], { isNew: true })).toEqual(newest);
    expect(feed([{ on: 3 }, { on: 3 }, { on: 1, leg: leg(2, "rest", { phase }) }])).toEqual({ stage: 2, content: 3 });
  });

  test.each(stalls)("that is %s is not sealed again for what it moves itself", (phase) => {
    expect(feed([{ on: 1, leg: leg(2, "canary", { phase }) }, { on: 1 }, { on: 1 }])).toBeUndefined();
    expect(feed([{ on: 2 }, { on: 2 }, { on: 1, leg: leg(2, "rest", { phase }) }])).toBeUndefined();
  });

  test("that had assigned nothing when it was suspended lets another in, and one sealed since does not", () => {
    const unbegun = leg(2, "canary", { counts: { Waiting: 2 }, startedAt: "2026-11-21T08:00:00.000Z" });
    const after = { resumedAt: "2026-11-21T09:00:00.000Z" };
    const before = { resumedAt: "2026-11-21T07:00:00.000Z" };
    const stages = (one: LegRow) => [{ on: 1, leg: one }, { on: 1 }, { on: 1 }];
    expect(feed(stages(unbegun), { isNew: true, ...after })).toEqual(newest);
    expect(feed(stages(unbegun), { isNew: true, ...before })).toBeUndefined();
    expect(
      feed(stages({ ...unbegun, counts: { ...unbegun.counts, Assigned: 1 } }), { isNew: true, ...after }),
    ).toBeUndefined();
  });

  test.each<[string, Partial<LegRow["counts"]>, number, Feed | undefined]>([
    ["a freeze, lets another in", { Waiting: 2, Succeeded: 1 }, 0, newest],
    ["a freeze or a worker that does nothing, lets another in", { Waiting: 2, Assigned: 1 }, 1, newest],
    ["a freeze or for one that changes, keeps it", { Waiting: 2, Assigned: 1 }, 0, none],
    ["a freeze or its turn, keeps it", { Waiting: 3 }, 0, none],
    ["a freeze or its rendering, keeps it", { Waiting: 2, Rendering: 1 }, 0, none],
  ])("of which everybody who is left waits for %s", (_what, counts, stuck, fed) => {
    const held = leg(2, "canary", { counts: { Assigned: 0, ...counts }, frozen: { as: "", by: { inc: [0, 1] } } });
    const stages = [{ on: 1, leg: held }, { on: 1 }, { on: 1 }];
    const found = new Map([[legKey(held), stuck]]);
    expect(feed(stages, { isNew: true, stuck: found })).toEqual(fed);
    expect(feed(stages, { isNew: true, stuck: found, supersede: "finish" })).toEqual(fed);
  });

  test("gives way to a farewell, stage by stage", () => {
    const moving = [{ on: 1, leg: leg(2, "canary") }, { on: 1 }, { on: 1 }];
    expect(feed(moving, { isNew: true, farewell: true })).toEqual(newest);
    const later = [{ on: 3 }, { on: 1, leg: leg(2, "early") }, { on: 1 }];
    expect(feed(later, { farewell: true })).toEqual({ stage: 1, content: 3 });
  });
});

describe("several contents under way", () => {
  test("go through one stage each", () => {
    const stages = [
      { on: 3, leg: leg(4, "canary") },
      { on: 2, leg: leg(3, "early") },
      { on: 1, leg: leg(2, "rest") },
    ];
    expect(feed(stages, { isNew: true })).toBeUndefined();
    expect(feed([{ on: 3 }, ...stages.slice(1)], { isNew: true })).toEqual(newest);
  });

  test.each<[string, readonly Standing[], Feed | undefined]>([
    ["one goes through a later stage", [{ on: 2 }, { on: 1, leg: leg(2, "early") }, { on: 1 }], none],
    ["one is between two stages", [{ on: 2 }, { on: 2 }, { on: 1 }], { stage: 2, content: 2 }],
    [
      "one is to follow a stalled one",
      [{ on: 3 }, { on: 3 }, { on: 1, leg: leg(2, "rest", { phase: "Halted" }) }],
      { stage: 2, content: 3 },
    ],
    ["one is stalled", [{ on: 2 }, { on: 2 }, { on: 1, leg: leg(2, "rest", { phase: "Halted" }) }], newest],
    ["one is through", [{ on: 2 }, { on: 2 }, { on: 2 }], newest],
  ])("with supersede: finish the next is taken only when none is in flight: %s", (_name, stages, fed) => {
    expect(feed(stages, { isNew: true, supersede: "finish" })).toEqual(fed);
  });

  test("a farewell waits for none of them", () => {
    const stages = [{ on: 2 }, { on: 1, leg: leg(2, "early") }, { on: 1 }];
    expect(feed(stages, { isNew: true, supersede: "finish", farewell: true })).toEqual(newest);
  });
});

test.each<[string, readonly Standing[], boolean]>([
  ["every stage is on the newest", [{ on: 2 }, { on: 2 }], true],
  ["one is not", [{ on: 2 }, { on: 1 }], false],
  ["something goes through one", [{ on: 2 }, { on: 2, leg: leg(2, "early") }], false],
])("all is through when %s: that is %s", (_name, stages, is) => {
  expect(isThrough(standing(stages, { last: 2 }).unit)).toBe(is);
});

describe("stages are known by their names", () => {
  const on = (name: string, content?: number) => stageOfUnit(name, content === undefined ? {} : { on: content });
  const named = (before: readonly UnitStage[], ...names: string[]) =>
    stagesNamed({ stages: before, last: 0 }, names, { members: new Map() }).map((stage) => [stage.name, stage.on]);

  test.each<[string, readonly UnitStage[], readonly string[], readonly (readonly [string, number | undefined])[]]>([
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
      [on("rest", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "one between is on what comes after it",
      [on("canary", 5), on("rest", 3)],
      ["canary", "early", "rest"],
      [
        ["canary", 5],
        ["early", 3],
        ["rest", 3],
      ],
    ],
    [
      "one between is on what the very next is on, and not the last",
      [on("canary", 5), on("early", 4), on("rest", 3)],
      ["canary", "middle", "early", "rest"],
      [
        ["canary", 5],
        ["middle", 4],
        ["early", 4],
        ["rest", 3],
      ],
    ],
    ["one that goes takes nothing with it", [on("canary", 5), on("rest", 3)], ["rest"], [["rest", 3]]],
    [
      "another order is no other stage, and none is on more than the one before it",
      [on("canary", 5), on("early", 4), on("rest", 3)],
      ["early", "canary", "rest"],
      [
        ["early", 4],
        ["canary", 4],
        ["rest", 3],
      ],
    ],
    [
      "a last one of another name is on what the last one was",
      [on("canary", 5), on("rest", 3)],
      ["canary", "others"],
      [
        ["canary", 5],
        ["others", 3],
      ],
    ],
    [
      "all of other names are on what all have",
      [on("all", 3)],
      ["canary", "rest"],
      [
        ["canary", 3],
        ["rest", 3],
      ],
    ],
    [
      "as long as nothing has passed there is nothing to be on",
      [on("all")],
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
    const stages = [on("canary", 5), on("rest", 3)];
    const found = stagesNamed({ stages, last: 5 }, ["canary", "rest"], {
      members: new Map(),
      verified: new Map(Object.entries(verified)),
    });
    expect(found.map((stage) => [stage.name, stage.on])).toEqual(after);
  });

  test("and keep what is under way in them; how many members they have is new", () => {
    const moving = { content: 6, stage: "canary", seal: 0 };
    const before = [
      stageOfUnit("canary", { on: 5, moving, members: 9, changing: 2, failedArrivals: 1 }),
      on("rest", 3),
    ];
    expect(stagesNamed({ stages: before, last: 0 }, ["canary", "rest"], { members: new Map([["canary", 4]]) })).toEqual(
      [
        { name: "canary", on: 5, moving, members: 4, changing: 2, failedArrivals: 1 },
        { name: "rest", on: 3, members: 0, changing: 0, failedArrivals: 0 },
      ],
    );
  });
});
