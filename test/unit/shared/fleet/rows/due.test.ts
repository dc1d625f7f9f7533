import { describe, expect, test } from "vitest";
import {
  backoffSeconds,
  backoffSecondsAfter,
  due,
  dueAtOf,
  dueAttributes,
  dueShard,
  dueShardCount,
  jittered,
  later,
  queuedNow,
  queuedUntil,
  timerAttributes,
  watchdogAt,
  watchdogBehind,
} from "#shared/fleet/rows/due.ts";

const at = "2026-11-21T08:00:00.000Z";

describe("the timer of a row that is due", () => {
  test("the timer says when which row is due, in text that sorts by time", () => {
    const key = { pk: "CL#c1", sk: "SYNC#shop#web.app" };
    const timer = dueAttributes(key, at);
    expect(timer.dueKey).toBe(`${at}#CL#c1|SYNC#shop#web.app`);
    expect(dueAtOf(timer.dueKey)).toBe(at);
    expect(dueAttributes(key, later(at, 1)).dueKey > timer.dueKey).toBe(true);
    expect(dueAttributes(key, later(at, 1)).dueShard).toBe(timer.dueShard);
  });

  test("timers spread rows over all shards, and over no others", () => {
    const shards = new Set(
      Array.from({ length: 400 }, (_, index) => dueAttributes({ pk: `CL#c${index}`, sk: "META" }, at).dueShard),
    );
    expect([...shards].sort()).toEqual(Array.from({ length: dueShardCount }, (_, index) => dueShard(index)));
  });
});

describe("a row", () => {
  const sent = {
    pk: "CL#c1",
    sk: "META",
    type: "Any",
    schema: 1,
    version: 3,
    ...dueAttributes({ pk: "CL#c1", sk: "META" }, at),
  };
  const bare = { pk: "CL#c1", sk: "META", type: "Any", schema: 1, version: 3 };

  test.each([
    ["that becomes due drops its former timer and its count of messages", later(at, 9), undefined],
    ["that becomes due has the given count of messages", later(at, 9), 2],
    ["that becomes due has the count 0 when no message was sent", later(at, 9), 0],
  ])("a row %s", (_what, when, dispatches) => {
    const counted = dispatches === undefined ? {} : { dispatches };
    expect(due({ ...sent, dispatches: 4 }, when, dispatches)).toEqual({
      ...bare,
      ...dueAttributes(bare, when),
      ...counted,
    });
  });

  test("a row that waits for nothing has no timer", () => {
    expect(Object.keys(due({ ...sent, dispatches: 4 }, undefined))).toEqual(Object.keys(bare));
    expect(due(due(sent, undefined), undefined)).toEqual(bare);
  });

  test("the attributes of a timer are all those that a due row adds", () => {
    expect([...timerAttributes].sort()).toEqual(
      Object.keys({ ...due(bare, at, 1) })
        .filter((name) => !(name in bare))
        .sort(),
    );
  });
});

test.each([
  [0, 30],
  [1, 60],
  [2, 120],
  [3, 240],
  [4, 480],
  [5, 900],
  [6, 900],
  [10_000, 900],
])("the watchdog after %i dispatches is %i seconds", (dispatches, seconds) => {
  expect(watchdogAt(new Date(at), dispatches)).toBe(later(at, seconds));
});

test.each([
  [0, 30],
  [100, 30],
  [110, 33],
  [1_000, 300],
  [10_000, 300],
])("the watchdog of a cluster behind %i others is %i seconds", (others, seconds) => {
  expect(watchdogBehind(new Date(at), others)).toBe(later(at, seconds));
});

test.each([
  ["no work waits", undefined, later(at, 0.3), 0],
  ["all waiting work has started", later(at, -60), later(at, 0.3), 0],
  ["the last waiting work starts now", at, later(at, 0.3), 0],
  ["ten pieces of work wait", later(at, 3), later(at, 3.3), 10],
])("new work starts after the waiting work, when %s", (_what, until, next, waiting) => {
  expect(queuedUntil(until, new Date(at))).toBe(next);
  expect(queuedNow(until, new Date(at))).toBe(waiting);
});

test.each([
  [-1, 5],
  [0, 5],
  [1, 5],
  [2, 10],
  [3, 20],
  [7, 320],
  [8, 600],
  [1_000_000, 600],
])("the back-off of try %i is %i seconds", (tries, seconds) => {
  expect(backoffSeconds(tries)).toBe(seconds);
});

test.each([
  [0, 300],
  [1, 300],
  [2, 600],
  [3, 1200],
  [7, 19_200],
  [8, 21_600],
  [1_000_000, 21_600],
])("the pause after time %i is %i seconds", (times, seconds) => {
  expect(backoffSecondsAfter(times)).toBe(seconds);
});

describe("an interval", () => {
  test("a jittered interval is the same for the same seed, and differs by at most 5 % from the given one", () => {
    const values = Array.from({ length: 500 }, (_, index) => jittered(600, `seed ${index}`));
    expect(values).toEqual(Array.from({ length: 500 }, (_, index) => jittered(600, `seed ${index}`)));
    expect(Math.min(...values)).toBeGreaterThanOrEqual(570);
    expect(Math.max(...values)).toBeLessThanOrEqual(630);
    expect(new Set(values.map((value) => Math.round(value / 10))).size).toBeGreaterThan(5);
  });
});

test.each([
  [at, 0.5, "2026-11-21T08:00:00.500Z"],
  [new Date(at), 86_400, "2026-11-22T08:00:00.000Z"],
  [at, -1, "2026-11-21T07:59:59.000Z"],
  ["2026-11-21T09:00:00+01:00", 0, at],
])("the time %s and %f seconds later is %s", (from, seconds, expected) => {
  expect(later(from, seconds)).toBe(expected);
});
