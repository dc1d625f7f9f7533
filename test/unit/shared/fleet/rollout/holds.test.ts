import { describe, expect, test } from "vitest";
import {
  countHeld,
  frozenIn,
  heldIn,
  thawHold,
  waitsForThaw,
  withHeld,
  withoutHeld,
} from "#shared/fleet/rollout/holding.ts";
import type { FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import type { Hold } from "#shared/fleet/rows/rollout-rows.ts";
import type { NamedWindow } from "#shared/fleet/rows/windows-row.ts";

const now = new Date("2026-11-21T08:00:00.000Z");
const of = (ring: string) => ({ text: `ring=${ring}`, selector: { matchLabels: { ring } } });
const freezeState: FreezeState = {
  freezes: [{ name: "inc", clusters: of("canary"), by: "ana", at: now.toISOString(), reason: "incident" }],
  lifted: [],
};

const holds: readonly Hold[] = [
  { cause: "freeze", name: "inc", clusters: [0, 4] },
  { cause: "worker", clusters: [2] },
  { cause: "freeze", name: "night", clusters: [1] },
  { cause: "rendering", clusters: [3] },
];

const cluster = (ring: string) => ({ name: "c1", labels: { ring } });
const row = { operations: {} };
const nightly = (name: string, ring: string, cron: string, kind: "allow" | "deny" = "allow") => ({
  name,
  clusters: { selector: { matchLabels: { ring } } },
  ...{ allow: [], deny: [], [kind]: [{ cron, duration: "2h", timeZone: "UTC" }] },
});
const noFreeze = { freezes: [], lifted: [] };

test("a freeze holds a cluster back whose labels it selects, and is named", () => {
  expect(thawHold({ cordons: [], freezeState, windows: [], row }, cluster("canary"), now)).toEqual({
    cause: "freeze",
    name: "inc",
  });
  expect(thawHold({ cordons: [], freezeState, windows: [], row }, cluster("rest"), now)).toBeUndefined();
});

test("a cordon is named before a freeze, ends by itself, and does not hold a deletion", () => {
  const ends = { cluster: "c1", by: "ana", at: now.toISOString(), until: new Date(now.getTime() + 1000).toISOString() };
  const known = { cordons: [ends], freezeState, windows: [], row };
  expect(thawHold(known, cluster("canary"), now)).toEqual({ cause: "cordon", name: "c1" });
  expect(thawHold(known, { ...cluster("canary"), name: "c2" }, now)?.cause).toBe("freeze");
  expect(thawHold(known, cluster("canary"), new Date(now.getTime() + 1000))?.cause).toBe("freeze");
  const deletion = { by: "ana", at: now.toISOString(), cascade: "delete" as const, number: 1 };
  expect(thawHold({ ...known, row: { operations: { deletion } } }, cluster("canary"), now)?.cause).toBe("freeze");
});

describe("the windows over a cluster", () => {
  const held = (windows: readonly NamedWindow[], ring = "rest") =>
    thawHold({ cordons: [], freezeState, windows, row }, cluster(ring), now)?.name;

  test("a closed window holds back the clusters that it selects, and an open one does not", () => {
    expect(held([nightly("night", "rest", "0 22 * * *")])).toBe("night");
    expect(held([nightly("morning", "rest", "0 7 * * *")])).toBeUndefined();
    expect(held([nightly("night", "other", "0 22 * * *")])).toBeUndefined();
  });

  test("the allowed times of all windows over a cluster are a union, and a denied time beats them", () => {
    const two = [nightly("morning", "rest", "0 7 * * *"), nightly("night", "rest", "0 22 * * *")];
    expect(held(two)).toBeUndefined();
    expect(held([...two, nightly("peak", "rest", "0 8 * * *", "deny")])).toBe("morning, night, peak");
  });

  test("a freeze is named before a closed window, and a deletion waits for no window", () => {
    const windows = [nightly("night", "canary", "0 22 * * *")];
    expect(held(windows, "canary")).toBe("inc");
    const deletion = { by: "ana", at: now.toISOString(), cascade: "delete" as const, number: 1 };
    const going = { cordons: [], freezeState: noFreeze, windows, row: { operations: { deletion } } };
    expect(thawHold(going, cluster("canary"), now)).toBeUndefined();
  });
});

test("freezes and windows are the causes that end for all their clusters at once", () => {
  const causes = ["freeze", "window", "bound", "worker", "rendering"] as const;
  expect(causes.filter((cause) => waitsForThaw({ cause }))).toEqual(["freeze", "window"]);
});

describe("the targets that are held back", () => {
  test("the frozen ones are those of every freeze", () => {
    expect(frozenIn({ holds })).toEqual([0, 4, 1]);
  });

  test("those of one cause are listed in the order in which they wait", () => {
    expect(heldIn({ holds }, "freeze")).toEqual([0, 4, 1]);
    expect(heldIn({ holds }, "worker")).toEqual([2]);
    expect(heldIn({ holds }, "bound")).toEqual([]);
  });

  /** Legend: what one more target waits for, and the holds afterwards. */
  test.each<[string, Pick<Hold, "cause" | "name">, readonly Hold[]]>([
    [
      "a freeze that holds others",
      { cause: "freeze", name: "inc" },
      holds.with(0, { ...holds[0], cause: "freeze", clusters: [0, 4, 9] }),
    ],
    ["another freeze", { cause: "freeze", name: "new" }, [...holds, { cause: "freeze", name: "new", clusters: [9] }]],
    ["a cause without a name", { cause: "worker" }, holds.with(1, { cause: "worker", clusters: [2, 9] })],
    [
      "a bound of the same name as a freeze",
      { cause: "bound", name: "inc" },
      [...holds, { cause: "bound", name: "inc", clusters: [9] }],
    ],
  ])("a target that waits for %s is added to it", (_what, hold, after) => {
    expect(withHeld(holds, hold, 9)).toEqual(after);
  });

  test("a hold without a name has no such member", () => {
    expect(Object.keys(withHeld([], { cause: "worker" }, 1)[0] ?? {})).toEqual(["cause", "clusters"]);
  });

  test("a target that is held back no longer leaves its hold, and a hold without targets goes", () => {
    expect(withoutHeld(holds, 4)).toEqual(holds.with(0, { cause: "freeze", name: "inc", clusters: [0] }));
    expect(withoutHeld(holds, 2)).toEqual(holds.toSpliced(1, 1));
    expect(withoutHeld(holds, 9)).toEqual(holds);
  });
});

test("the catch-ups that a cause holds back are counted over all names", () => {
  const counted: readonly Hold<number>[] = [
    { cause: "freeze", name: "inc", clusters: 3 },
    { cause: "worker", clusters: 2 },
    { cause: "freeze", name: "night", clusters: 4 },
  ];
  expect(countHeld({ holds: counted }, "freeze")).toBe(7);
  expect(countHeld({ holds: counted }, "worker")).toBe(2);
  expect(countHeld({ holds: counted }, "rendering")).toBe(0);
});
