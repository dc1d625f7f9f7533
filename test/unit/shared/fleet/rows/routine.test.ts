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

function idle(template: string, more: { readonly interval?: string; readonly observed?: Partial<Observed> } = {}) {
  const apply = applyOptions.parse({ interval: more.interval ?? "10m" });
  return syncRowOf("c1", { template, desired: { apply }, observed: { at, ...more.observed } });
}

function within(time: string | undefined, from: number, to: number): void {
  const after = (Date.parse(time ?? "") - Date.parse(at)) / 1000;
  expect(after).toBeGreaterThanOrEqual(from);
  expect(after).toBeLessThanOrEqual(to);
}

describe("the routine of a cluster", () => {
  test("the routine has, for each interval of the idle Syncs, the oldest check", () => {
    const rows = [
      idle("a", { observed: { at: seconds(60) } }),
      idle("b", { observed: { at: seconds(30) } }),
      idle("c", { interval: "1h", observed: { at: seconds(10) } }),
      idle("d", { interval: "24h", observed: { phase: "Verifying", nextAt: seconds(1) } }),
      syncRowOf("c1", { template: "e" }),
    ];
    expect(routineOf(rows, {})).toEqual({ 600: seconds(30), 3600: seconds(10) });
  });

  test("the routine continues from the known times, and drops intervals without a Sync", () => {
    const known = { 600: seconds(500), 86400: at };
    expect(routineOf([idle("a"), idle("b", { interval: "1h" })], known)).toEqual({ 600: seconds(500), 3600: at });
    expect(routineOf([], known)).toEqual({});
  });

  test("the routine keeps its known times for Syncs in progress, and drops them for Syncs that no worker checks", () => {
    const known = { 600: seconds(500) };
    const onTheWay = idle("a", { observed: { phase: "Verifying", nextAt: seconds(600) } });
    const begins = { ...onTheWay, desired: { ...onTheWay.desired, attempt: 2 } };
    expect(routineOf([onTheWay], known)).toEqual(known);
    expect(routineOf([begins], known)).toEqual(known);
    expect(routineOf([onTheWay, idle("b")], known)).toEqual(known);
    expect(routineOf([onTheWay], {})).toEqual({});
    expect(routineOf([idle("a", { observed: { phase: "Reachable" } })], known)).toEqual({});
    const forgotten = { ...onTheWay, desired: { ...onTheWay.desired, action: "orphan" as const } };
    expect(routineOf([forgotten], known)).toEqual({});
  });

  test("the routine is due at the end of its first interval, with a jitter for each cluster", () => {
    within(nextRoutine("c1", { 600: at, 3600: at }), 570, 630);
    within(nextRoutine("c1", { 600: seconds(3600), 3600: at }), 3420, 3780);
    expect(nextRoutine("c1", {})).toBeUndefined();
    const times = Array.from({ length: 50 }, (_, index) => nextRoutine(`c${index}`, { 600: at }));
    expect(new Set(times).size).toBeGreaterThan(40);
  });

  test.each([
    { checks: 10, most: 180 },
    { checks: 30, most: 130 },
  ])("the next checks of 1,000 clusters spread out: after $checks checks no minute has more than $most", (given) => {
    const clusters = Array.from({ length: 1000 }, (_, index) => `c${index}`);
    let checks = new Map(clusters.map((cluster, index) => [cluster, seconds(index % 60)]));
    for (let check = 1; check <= given.checks; check++) {
      checks = new Map([...checks].map(([cluster, last]) => [cluster, nextRoutine(cluster, { 600: last }) ?? ""]));
    }
    const perMinute = Map.groupBy(checks.values(), (time) => Math.floor(((Date.parse(time) / 1000) % 600) / 60));
    const busiest = Math.max(...[...perMinute.values()].map(({ length }) => length));
    // An even distribution has 100 in each minute.
    expect(busiest).toBeLessThanOrEqual(given.most);
  });

  test("the routine starts anew for the intervals that had ended when it began", () => {
    const now = new Date(seconds(640));
    expect(routineAfter("c1", { 600: at, 3600: at }, now)).toEqual({ 600: seconds(640), 3600: at });
    expect(routineAfter("c1", { 600: at }, new Date(seconds(560)))).toEqual({ 600: at });
  });

  test("a Sync has its routine check once", () => {
    const routine = { 600: at };
    const due = routineAt(idle("a"), routine) ?? "";
    expect(isRoutineDue(idle("a"), routine, new Date(later(due, -1)))).toBe(false);
    expect(isRoutineDue(idle("a"), routine, new Date(due))).toBe(true);
    // The Sync had its turn in a run that was too short for all Syncs.
    expect(isRoutineDue(idle("a", { observed: { at: due } }), routine, new Date(later(due, 5)))).toBe(false);
    // Workers begin half a second early: a check of that time is not repeated.
    const early = later(due, -0.4);
    expect(isRoutineDue(idle("a"), routine, new Date(early))).toBe(true);
    expect(isRoutineDue(idle("a", { observed: { at: early } }), routine, new Date(later(due, -0.3)))).toBe(false);
    expect(isRoutineDue(idle("a", { observed: { at: later(due, -1) } }), routine, new Date(due))).toBe(true);
    expect(isRoutineDue(idle("a", { interval: "1h" }), routine, new Date(due))).toBe(false);
  });

  test("a routine check is late one interval after it was due, until the Sync has had its turn", () => {
    const routine = { 600: at };
    const late = later(routineAt(idle("a"), routine) ?? "", 600);
    expect(isRoutineLate(idle("a"), routine, new Date(later(late, -1)))).toBe(false);
    expect(isRoutineLate(idle("a"), routine, new Date(late))).toBe(true);
    expect(isRoutineLate(idle("a", { observed: { at: later(late, -5) } }), routine, new Date(late))).toBe(false);
    expect(isRoutineLate(idle("a", { interval: "1h" }), routine, new Date(late))).toBe(false);
  });

  test("the routine says when a Sync was checked last, unless the Sync's own row has a later time", () => {
    expect(lastCheck(idle("a"), { 600: seconds(600) })).toBe(seconds(600));
    expect(lastCheck(idle("a", { observed: { at: seconds(900) } }), { 600: seconds(600) })).toBe(seconds(900));
    expect(lastCheck(idle("a"))).toBe(at);
    const updatingTo = idle("a", { observed: { phase: "Applying", nextAt: seconds(1) } });
    expect(lastCheck(updatingTo, { 600: seconds(600) })).toBe(at);
    expect(lastCheck(syncRowOf("c1"), { 600: at })).toBeUndefined();
  });
});

describe("an idle Sync", () => {
  test.each<[string, boolean, SyncRow]>([
    ["that is ready", true, idle("a")],
    ["that failed", true, idle("a", { observed: { phase: "Failed" } })],
    ["that is in progress", false, idle("a", { observed: { phase: "Verifying", nextAt: at } })],
    ["with a request", false, { ...idle("a"), reconcile: 3 }],
    ["that is new", false, syncRowOf("c1")],
    ["with a newer assignment", false, syncRowOf("c1", { desired: { attempt: 2 }, observed: { attempt: 1 } })],
    ["that is gone", false, idle("a", { observed: { phase: "Gone" } })],
  ])("a Sync %s is idle: %s", (_what, expected, row) => {
    expect(isIdle(row)).toBe(expected);
    // The timer of an idle Sync is a day after its routine check, in case that one is lost.
    const next = nextWork(row);
    expect(timerOf(row)).toBe(expected && next !== undefined ? later(next, 86_400) : next);
  });
});
