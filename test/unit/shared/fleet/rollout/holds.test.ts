import { describe, expect, test } from "vitest";
import {
  countHeld,
  freezeHold,
  frozenIn,
  heldIn,
  waitsForThaw,
  withHeld,
  withoutHeld,
} from "#shared/fleet/rollout/holding.ts";
import type { FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import type { Hold } from "#shared/fleet/rows/rollout-rows.ts";

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

test("a freeze holds a cluster back whose labels it selects, and is named", () => {
  expect(freezeHold(freezeState, { ring: "canary" }, now)).toEqual({ cause: "freeze", name: "inc" });
  expect(freezeHold(freezeState, { ring: "rest" }, now)).toBeUndefined();
});

test("a freeze is the only cause that ends with a thaw", () => {
  const causes = ["freeze", "bound", "worker", "rendering"] as const;
  expect(causes.filter((cause) => waitsForThaw({ cause }))).toEqual(["freeze"]);
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
