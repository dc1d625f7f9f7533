import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const row = (more: Parameters<typeof observedOf>[0] | undefined, desired = desiredOf({ attempt: 2 })) => ({
  uid: "u",
  desired,
  ...(more === undefined ? {} : { observed: observedOf({ attempt: 2, at, ...more }) }),
});

const hold = { reason: "DeadlineExceeded", at: later(at, 7) };
const hourly = desiredOf({ attempt: 2, apply: applyOptions.parse({ interval: "1h" }) });
const applied = { renderDigest: "sha256:1", revision: "r", attempt: 1, at };
const hour = "within 5% of 3600 seconds";

const held = { name: "inc-1", by: "ana", reason: "INC-1", attempt: 2, since: at, at };

const betweenTurns: typeof paused = [
  { name: "and that was never seen, is never", row: row(undefined, hourly), expected: undefined },
  { name: "before it was begun, is after its interval", row: row({ attempt: 1, applied }, hourly), expected: hour },
  { name: "before anything was applied whole, is never", row: row({ attempt: 1 }, hourly), expected: undefined },
  { name: "and that was begun only, is never", row: row({ phase: "Applying" }, hourly), expected: undefined },
  {
    name: "and all of which is applied, is when that said",
    row: row({ phase: "Verifying", nextAt: later(at, 9) }, hourly),
    expected: later(at, 9),
  },
  {
    name: "and that is ready all the same, is after its interval",
    row: row({ phase: "Ready" }, hourly),
    expected: hour,
  },
  {
    name: "and that is asked for, is not for that",
    row: {
      ...row({ phase: "Ready" }, hourly),
      reconcile: 3,
      operations: { prune: { number: 4, by: "ana", at, objects: [] } },
    },
    expected: hour,
  },
  {
    name: "and still holds, is whether it does",
    row: { ...row(undefined, hourly), held, reconcile: 3 },
    expected: later(at, 300),
  },
];

const paused: readonly {
  readonly name: string;
  readonly row: Parameters<typeof nextWork>[0];
  readonly expected: string | undefined;
}[] = [
  { name: "and was never seen is at once", row: row(undefined, hourly), expected: hold.at },
  { name: "before it was begun is after its interval", row: row({ attempt: 1, applied }, hourly), expected: hour },
  { name: "before anything was applied whole is at once", row: row({ attempt: 1 }, hourly), expected: hold.at },
  { name: "and not told so yet is at once", row: row({ phase: "Reachable" }, hourly), expected: hold.at },
  {
    name: "while it was tried is when that said",
    row: row({ phase: "Retrying", nextAt: later(at, 3) }, hourly),
    expected: later(at, 3),
  },
  { name: "and told so is after its interval", row: row({ phase: "Failed" }, hourly), expected: hour },
  { name: "and ready all the same is after its interval", row: row({ phase: "Ready" }, hourly), expected: hour },
  {
    name: "and asked for is at once",
    row: { ...row({ phase: "Failed" }, hourly), reconcile: 3 },
    expected: hold.at,
  },
  {
    name: "and silent is when that said",
    row: row({ phase: "Unreachable", nextAt: later(at, 9) }, hourly),
    expected: later(at, 9),
  },
  { name: "and gone is never", row: row({ phase: "Gone" }, hourly), expected: undefined },
  {
    name: "and forgotten is never",
    row: row({ phase: "Failed" }, desiredOf({ attempt: 2, action: "orphan" })),
    expected: undefined,
  },
];

describe("a worker's next look", () => {
  test.each<{
    readonly name: string;
    readonly row: Parameters<typeof nextWork>[0];
    readonly expected: string | undefined;
  }>([
    { name: "at a new assignment is at once", row: row(undefined), expected: desiredOf({}).assignedAt },
    { name: "at one whose observation is older, too", row: row({ attempt: 1 }), expected: desiredOf({}).assignedAt },
    {
      name: "at what is forgotten is never",
      row: row({}, desiredOf({ attempt: 2, action: "orphan" })),
      expected: undefined,
    },
    { name: "at what is gone is never", row: row({ phase: "Gone" }), expected: undefined },
    { name: "at one that answers again waits for the planner", row: row({ phase: "Reachable" }), expected: undefined },
    {
      name: "at a deletion that may go on waits for it, too",
      row: row({ phase: "Reachable", nextAt: later(at, 5) }, desiredOf({ attempt: 2, action: "delete" })),
      expected: undefined,
    },
    {
      name: "at one that answers again waits for it whatever was asked for",
      row: { ...row({ phase: "Reachable" }), reconcile: 2 },
      expected: undefined,
    },
    {
      name: "at a new assignment that is to begin later is then",
      row: row({ attempt: 1 }, desiredOf({ attempt: 2, startAt: later(at, 90) })),
      expected: later(at, 90),
    },
    {
      name: "at one that has begun is not put off by when it was to begin",
      row: row({ phase: "Applying", nextAt: later(at, 1) }, desiredOf({ attempt: 2, startAt: later(at, 90) })),
      expected: later(at, 1),
    },
    {
      name: "at what is moving is when it said",
      row: row({ phase: "Verifying", nextAt: later(at, 4) }),
      expected: later(at, 4),
    },
    {
      name: "at what somebody asked for is at once",
      row: { ...row({ phase: "Ready" }), reconcile: 2 },
      expected: desiredOf({}).assignedAt,
    },
    {
      name: "at what was asked for is never put off by what it said before",
      row: { ...row({ phase: "Verifying", nextAt: later(at, 4), handledReconcile: 1 }), reconcile: 2 },
      expected: desiredOf({}).assignedAt,
    },
    {
      name: "at what was asked for and is done, is after its interval",
      row: {
        ...row({ phase: "Ready", handledReconcile: 2 }, desiredOf({ attempt: 2, apply: applyOptions.parse({}) })),
        reconcile: 2,
      },
      expected: "within 5% of 600 seconds",
    },
    {
      name: "at a settled one is after its interval",
      row: row({ phase: "Failed" }, desiredOf({ attempt: 2, apply: applyOptions.parse({ interval: "1h" }) })),
      expected: "within 5% of 3600 seconds",
    },
    ...betweenTurns.map(({ name, row, expected }) => ({
      name: `at what a freeze took the turn of, ${name}`,
      row: { ...row, paused: { ...hold, freeze: "inc-1" } },
      expected,
    })),
    ...paused.map(({ name, row, expected }) => ({
      name: `at what is parked ${name}`,
      row: { ...row, paused: hold },
      expected,
    })),
  ])("$name", ({ row, expected }) => {
    const next = nextWork(row);
    const interval = /within 5% of (\d+)/.exec(expected ?? "");
    if (interval === null) {
      expect(next).toBe(expected);
      return;
    }
    const seconds = Number(interval[1]);
    expect(next).toBeDefined();
    expect(next && next >= later(at, seconds * 0.95) && next <= later(at, seconds * 1.05)).toBe(true);
  });

  test("is spread: Syncs that were looked at together are not looked at together again", () => {
    const checks = Array.from({ length: 50 }, (_, index) => nextWork({ ...row({ phase: "Ready" }), uid: `u${index}` }));
    expect(new Set(checks).size).toBeGreaterThan(40);
    const again = Array.from({ length: 50 }, (_, index) => {
      const checked = later(at, index);
      return Date.parse(nextWork(row({ phase: "Ready", at: checked })) ?? "") - Date.parse(checked);
    });
    expect(new Set(again).size).toBeGreaterThan(40);
  });
});
