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
  { name: "before any observation is never due", row: row(undefined, hourly), expected: undefined },
  {
    name: "before the attempt began is due after its interval",
    row: row({ attempt: 1, applied }, hourly),
    expected: hour,
  },
  {
    name: "before anything was completely applied is never due",
    row: row({ attempt: 1 }, hourly),
    expected: undefined,
  },
  { name: "in the middle of its apply is never due", row: row({ phase: "Applying" }, hourly), expected: undefined },
  {
    name: "after its apply is due at the observation's time",
    row: row({ phase: "Verifying", nextAt: later(at, 9) }, hourly),
    expected: later(at, 9),
  },
  {
    name: "and ready is due after its interval",
    row: row({ phase: "Ready" }, hourly),
    expected: hour,
  },
  {
    name: "does not become due by a request",
    row: {
      ...row({ phase: "Ready" }, hourly),
      reconcile: 3,
      operations: { prune: { number: 4, by: "ana", at, objects: [] } },
    },
    expected: hour,
  },
  {
    name: "that is still in force is due to see whether it is",
    row: { ...row(undefined, hourly), held, reconcile: 3 },
    expected: later(at, 300),
  },
];

const paused: readonly {
  readonly name: string;
  readonly row: Parameters<typeof nextWork>[0];
  readonly expected: string | undefined;
}[] = [
  { name: "before any observation is due at once", row: row(undefined, hourly), expected: hold.at },
  {
    name: "before the attempt began is due after its interval",
    row: row({ attempt: 1, applied }, hourly),
    expected: hour,
  },
  {
    name: "before anything was completely applied is due at once",
    row: row({ attempt: 1 }, hourly),
    expected: hold.at,
  },
  { name: "before its worker noted it is due at once", row: row({ phase: "Reachable" }, hourly), expected: hold.at },
  {
    name: "while the worker tries again is due at the observation's time",
    row: row({ phase: "Retrying", nextAt: later(at, 3) }, hourly),
    expected: later(at, 3),
  },
  { name: "and noted as failed is due after its interval", row: row({ phase: "Failed" }, hourly), expected: hour },
  { name: "and ready is due after its interval", row: row({ phase: "Ready" }, hourly), expected: hour },
  {
    name: "and with a request is due at once",
    row: { ...row({ phase: "Failed" }, hourly), reconcile: 3 },
    expected: hold.at,
  },
  {
    name: "and unreachable is due at the observation's time",
    row: row({ phase: "Unreachable", nextAt: later(at, 9) }, hourly),
    expected: later(at, 9),
  },
  { name: "and gone is never due", row: row({ phase: "Gone" }, hourly), expected: undefined },
  {
    name: "and forgotten is never due",
    row: row({ phase: "Failed" }, desiredOf({ attempt: 2, action: "orphan" })),
    expected: undefined,
  },
];

describe("the next check of a Sync by its cluster's worker", () => {
  test.each<{
    readonly name: string;
    readonly row: Parameters<typeof nextWork>[0];
    readonly expected: string | undefined;
  }>([
    { name: "with a new assignment is due at once", row: row(undefined), expected: desiredOf({}).assignedAt },
    { name: "with an older observation is due at once", row: row({ attempt: 1 }), expected: desiredOf({}).assignedAt },
    {
      name: "that is forgotten is never due",
      row: row({}, desiredOf({ attempt: 2, action: "orphan" })),
      expected: undefined,
    },
    { name: "that is gone is never due", row: row({ phase: "Gone" }), expected: undefined },
    { name: "that answers again waits for the planner", row: row({ phase: "Reachable" }), expected: undefined },
    {
      name: "whose deletion may continue waits for the planner",
      row: row({ phase: "Reachable", nextAt: later(at, 5) }, desiredOf({ attempt: 2, action: "delete" })),
      expected: undefined,
    },
    {
      name: "that answers again waits for the planner despite a request",
      row: { ...row({ phase: "Reachable" }), reconcile: 2 },
      expected: undefined,
    },
    {
      name: "with an assignment that starts later is due at its start",
      row: row({ attempt: 1 }, desiredOf({ attempt: 2, startAt: later(at, 90) })),
      expected: later(at, 90),
    },
    {
      name: "that has begun is not delayed by its planned start",
      row: row({ phase: "Applying", nextAt: later(at, 1) }, desiredOf({ attempt: 2, startAt: later(at, 90) })),
      expected: later(at, 1),
    },
    {
      name: "that is changing is due at the observation's time",
      row: row({ phase: "Verifying", nextAt: later(at, 4) }),
      expected: later(at, 4),
    },
    {
      name: "with a request is due at once",
      row: { ...row({ phase: "Ready" }), reconcile: 2 },
      expected: desiredOf({}).assignedAt,
    },
    {
      name: "with a request is not delayed by an earlier observation",
      row: { ...row({ phase: "Verifying", nextAt: later(at, 4), handledReconcile: 1 }), reconcile: 2 },
      expected: desiredOf({}).assignedAt,
    },
    {
      name: "with an answered request is due after its interval",
      row: {
        ...row({ phase: "Ready", handledReconcile: 2 }, desiredOf({ attempt: 2, apply: applyOptions.parse({}) })),
        reconcile: 2,
      },
      expected: "within 5% of 600 seconds",
    },
    {
      name: "that is settled is due after its interval",
      row: row({ phase: "Failed" }, desiredOf({ attempt: 2, apply: applyOptions.parse({ interval: "1h" }) })),
      expected: "within 5% of 3600 seconds",
    },
    ...betweenTurns.map(({ name, row, expected }) => ({
      name: `paused by a freeze ${name}`,
      row: { ...row, paused: { ...hold, freeze: "inc-1" } },
      expected,
    })),
    ...betweenTurns.map(({ name, row, expected }) => ({
      name: `paused by a closed window ${name}`,
      row: { ...row, paused: { ...hold, window: true as const } },
      expected,
    })),
    ...paused.map(({ name, row, expected }) => ({
      name: `paused by the planner ${name}`,
      row: { ...row, paused: hold },
      expected,
    })),
  ])("the next check of a Sync $name", ({ row, expected }) => {
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

  test("Syncs that were checked together are not checked together again", () => {
    const checks = Array.from({ length: 50 }, (_, index) => nextWork({ ...row({ phase: "Ready" }), uid: `u${index}` }));
    expect(new Set(checks).size).toBeGreaterThan(40);
    const again = Array.from({ length: 50 }, (_, index) => {
      const checked = later(at, index);
      return Date.parse(nextWork(row({ phase: "Ready", at: checked })) ?? "") - Date.parse(checked);
    });
    expect(new Set(again).size).toBeGreaterThan(40);
  });
});
