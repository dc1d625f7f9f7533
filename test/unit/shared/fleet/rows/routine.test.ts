import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { isIdle, nextWork, timerOf } from "#shared/fleet/rows/next-work.ts";
import {
  isRoutineDue,
  isRoutineLate,
  lastCheck,
  nextRoutine,
  routineAfter,
  routineAt,
  routineOf,
} from "#shared/fleet/rows/routine.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const seconds = (after: number) => later(at, after);

function resting(template: string, more: { readonly interval?: string; readonly observed?: Partial<Observed> } = {}) {
  const apply = applyOptions.parse({ interval: more.interval ?? "10m" });
  return syncRowOf("c1", { template, desired: { apply }, observed: { at, ...more.observed } });
}

function within(time: string | undefined, from: number, to: number): void {
  const after = (Date.parse(time ?? "") - Date.parse(at)) / 1000;
  expect(after).toBeGreaterThanOrEqual(from);
  expect(after).toBeLessThanOrEqual(to);
}

describe("the routine of a cluster", () => {
  test("is that of its Syncs at rest, by interval, each from the one that was looked at longest ago", () => {
    const rows = [
      resting("a", { observed: { at: seconds(60) } }),
      resting("b", { observed: { at: seconds(30) } }),
      resting("c", { interval: "1h", observed: { at: seconds(10) } }),
      resting("d", { interval: "24h", observed: { phase: "Verifying", nextAt: seconds(1) } }),
      syncRowOf("c1", { template: "e" }),
    ];
    expect(routineOf(rows, {})).toEqual({ 600: seconds(30), 3600: seconds(10) });
  });

  test("goes on from what is known, and forgets intervals that nobody has", () => {
    const known = { 600: seconds(500), 86400: at };
    expect(routineOf([resting("a"), resting("b", { interval: "1h" })], known)).toEqual({ 600: seconds(500), 3600: at });
    expect(routineOf([], known)).toEqual({});
  });

  test("stays as it is known for what is on its way, and for nothing that waits for no worker", () => {
    const known = { 600: seconds(500) };
    const onTheWay = resting("a", { observed: { phase: "Verifying", nextAt: seconds(600) } });
    const begins = { ...onTheWay, desired: { ...onTheWay.desired, attempt: 2 } };
    expect(routineOf([onTheWay], known)).toEqual(known);
    expect(routineOf([begins], known)).toEqual(known);
    expect(routineOf([onTheWay, resting("b")], known)).toEqual(known);
    expect(routineOf([onTheWay], {})).toEqual({});
    expect(routineOf([resting("a", { observed: { phase: "Reachable" } })], known)).toEqual({});
    const forgotten = { ...onTheWay, desired: { ...onTheWay.desired, action: "orphan" as const } };
    expect(routineOf([forgotten], known)).toEqual({});
  });

  test("is due for the interval that ends first, a little sooner or later for each cluster", () => {
    within(nextRoutine("c1", { 600: at, 3600: at }), 570, 630);
    within(nextRoutine("c1", { 600: seconds(3600), 3600: at }), 3420, 3780);
    expect(nextRoutine("c1", {})).toBeUndefined();
    const times = Array.from({ length: 50 }, (_, index) => nextRoutine(`c${index}`, { 600: at }));
    expect(new Set(times).size).toBeGreaterThan(40);
  });

  test.each([
    { checks: 10, most: 180 },
    { checks: 30, most: 130 },
  ])(
    "of 1,000 clusters that were looked at in one minute: after $looks looks no minute has more than $most",
    (given) => {
      const clusters = Array.from({ length: 1000 }, (_, index) => `c${index}`);
      let checks = new Map(clusters.map((cluster, index) => [cluster, seconds(index % 60)]));
      for (let check = 1; check <= given.checks; check++) {
        checks = new Map([...checks].map(([cluster, last]) => [cluster, nextRoutine(cluster, { 600: last }) ?? ""]));
      }
      const perMinute = Map.groupBy(checks.values(), (time) => Math.floor(((Date.parse(time) / 1000) % 600) / 60));
      const busiest = Math.max(...[...perMinute.values()].map(({ length }) => length));
      // 100 where each minute has as many.
      expect(busiest).toBeLessThanOrEqual(given.most);
    },
  );

  test("begins anew for the intervals that were over when it began", () => {
    const now = new Date(seconds(640));
    expect(routineAfter("c1", { 600: at, 3600: at }, now)).toEqual({ 600: seconds(640), 3600: at });
    expect(routineAfter("c1", { 600: at }, new Date(seconds(560)))).toEqual({ 600: at });
  });

  test("comes to a Sync once", () => {
    const routine = { 600: at };
    const due = routineAt(resting("a"), routine) ?? "";
    expect(isRoutineDue(resting("a"), routine, new Date(later(due, -1)))).toBe(false);
    expect(isRoutineDue(resting("a"), routine, new Date(due))).toBe(true);
    // It had its turn in a run that was too short for all.
    expect(isRoutineDue(resting("a", { observed: { at: due } }), routine, new Date(later(due, 5)))).toBe(false);
    expect(isRoutineDue(resting("a", { interval: "1h" }), routine, new Date(due))).toBe(false);
  });

  test("is late an interval after it was due, until the Sync has had its turn", () => {
    const routine = { 600: at };
    const late = later(routineAt(resting("a"), routine) ?? "", 600);
    expect(isRoutineLate(resting("a"), routine, new Date(later(late, -1)))).toBe(false);
    expect(isRoutineLate(resting("a"), routine, new Date(late))).toBe(true);
    expect(isRoutineLate(resting("a", { observed: { at: later(late, -5) } }), routine, new Date(late))).toBe(false);
    expect(isRoutineLate(resting("a", { interval: "1h" }), routine, new Date(late))).toBe(false);
  });

  test("says when a Sync was looked at last, where its own row does not", () => {
    expect(lastCheck(resting("a"), { 600: seconds(600) })).toBe(seconds(600));
    expect(lastCheck(resting("a", { observed: { at: seconds(900) } }), { 600: seconds(600) })).toBe(seconds(900));
    expect(lastCheck(resting("a"))).toBe(at);
    const updatingTo = resting("a", { observed: { phase: "Applying", nextAt: seconds(1) } });
    expect(lastCheck(updatingTo, { 600: seconds(600) })).toBe(at);
    expect(lastCheck(syncRowOf("c1"), { 600: at })).toBeUndefined();
  });
});

describe("a Sync", () => {
  test.each<[string, boolean, SyncRow]>([
    ["that is ready rests", true, resting("a")],
    ["that failed rests", true, resting("a", { observed: { phase: "Failed" } })],
    ["that is on the way does not", false, resting("a", { observed: { phase: "Verifying", nextAt: at } })],
    ["that somebody asked for does not", false, { ...resting("a"), reconcile: 3 }],
    ["that is new does not", false, syncRowOf("c1")],
    ["with a newer assignment does not", false, syncRowOf("c1", { desired: { attempt: 2 }, observed: { attempt: 1 } })],
    ["that is gone does not", false, resting("a", { observed: { phase: "Gone" } })],
  ])("%s", (_what, expected, row) => {
    expect(isIdle(row)).toBe(expected);
    // One that rests is due by itself a day later than with the others.
    const next = nextWork(row);
    expect(timerOf(row)).toBe(expected && next !== undefined ? later(next, 86_400) : next);
  });
});
