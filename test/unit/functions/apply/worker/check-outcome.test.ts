import { describe, expect, test } from "vitest";
import { isQuietCheck, messagesOf, nextRow, waitedSeconds } from "#functions/apply/worker/check-outcome.ts";
import { defined } from "#shared/base/defined.ts";
import { due, dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { timerOf } from "#shared/fleet/rows/next-work.ts";
import { observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const nextAt = "2026-11-21T08:10:00.000Z";
const onward = (seconds: number) => later(nextAt, seconds);
const onTheWay = observedOf({ phase: "Verifying", reason: "NotReady", nextAt });

/** The time at which the row is due after a check. */
function timerAfter(set: string | undefined, observed = onTheWay): string {
  const row = due(syncRowOf("c1"), set, 3);
  const next = nextRow({ row, observed });
  expect(next.dispatches).toBe(0);
  return dueAtOf(next.dueKey ?? "");
}

describe("a Sync for whose next check a message is sent", () => {
  test.each([
    ["was not due", undefined, onward(30)],
    ["was due before the next check", onward(-5), onward(30)],
    ["was due a moment after the next check", onward(9.999), onward(30)],
    ["was due a while after the next check", onward(10), onward(10)],
    ["was due a moment before a new watchdog", onward(29.999), onward(29.999)],
    ["was due long after the next check", onward(600), onward(30)],
  ])("the Sync is due again at the right time when it %s", (_what, set, expected) => {
    expect(timerAfter(set)).toBe(expected);
  });
});

describe("a Sync that had to wait for its worker", () => {
  const { desired } = syncRowOf("c1");
  const { assignedAt } = desired;
  const before = observedOf({ phase: "Verifying", reason: "NotReady", nextAt: assignedAt });

  /** @param waited - how long ago it was due, and its message was sent, when the worker read its rows. */
  const graceAfter = (waited: { readonly due: number; readonly sent?: number }, observed = onTheWay, seen = before) => {
    const begun = new Date(later(assignedAt, waited.due));
    const sentAt = waited.sent === undefined ? undefined : new Date(later(begun, -waited.sent));
    const row = { ...syncRowOf("c1"), ...(seen === undefined ? {} : { observed: seen }) };
    const outcome = { row, observed, waitedSeconds: waitedSeconds(row, { begun, ...defined({ sentAt }) }) };
    return (Date.parse(dueAtOf(nextRow(outcome).dueKey ?? "")) - Date.parse(nextAt)) / 1000;
  };

  test.each([
    ["for less than a watchdog", { due: 29 }, 30],
    ["for a minute", { due: 60 }, 60],
    ["for a minute, and so did its message", { due: 60, sent: 60 }, 60],
    ["for an hour", { due: 3600 }, 300],
    ["for an hour, and its message for a minute", { due: 3600, sent: 60 }, 60],
    ["for an hour, and its message not at all", { due: 3600, sent: 0 }, 30],
    ["not at all, because its message was sent before it was due", { due: 0, sent: 900 }, 30],
    ["not at all, by a slow clock", { due: 3600, sent: -60 }, 30],
  ])("the Sync is due again as late as it waited for its worker: %s", (_what, waited, expected) => {
    expect(graceAfter(waited)).toBe(expected);
    expect(graceAfter(waited, onTheWay, undefined)).toBe(expected);
  });

  test("the Sync is not due later when a try failed", () => {
    expect(graceAfter({ due: 3600 }, { ...onTheWay, phase: "Retrying" })).toBe(30);
  });
});

test("an idle Sync is due at its own time, whatever was set before", () => {
  const ready = observedOf({ phase: "Ready" });
  const own = timerOf({ ...syncRowOf("c1"), observed: ready });
  expect(timerAfter(onward(20), ready)).toBe(own);
});

describe("a Sync with drift that stays", () => {
  const since = "2026-11-21T08:00:00.000Z";
  const seen = (status: "True" | "False") => {
    const drifted = { type: "Drifted", status, reason: "DriftDetected", message: "", since } as const;
    return observedOf({ phase: "Ready", conditions: [drifted] });
  };
  const row = { ...syncRowOf("c1"), observed: seen("True"), stateSk: "Drifted#c1#web.app" };

  test("the index has the Sync as Drifted, and not as Ready", () => {
    expect(nextRow({ row, observed: seen("True") }).stateSk).toBe("Drifted#c1#web.app");
    expect(nextRow({ row, observed: seen("False") }).stateSk).toBe("Ready#c1#web.app");
  });

  test("the worker reports drift when it begins and when it ends, because the group counts it", () => {
    const reported = (before: "True" | "False", after: "True" | "False") =>
      messagesOf({ row: { ...row, observed: seen(before) }, observed: seen(after) }, new Date(since)).map(
        ({ to }) => to,
      );
    expect(reported("False", "True")).toEqual(["report"]);
    expect(reported("True", "False")).toEqual(["report"]);
    expect(reported("True", "True")).toEqual([]);
  });

  test("a row that an older version indexed as Ready is written once", () => {
    const old = due({ ...row, stateSk: "Ready#c1#web.app" }, timerOf(row));
    const now = new Date(since);
    expect(isQuietCheck({ row: old, observed: seen("True") }, nextRow({ row: old, observed: seen("True") }), now)).toBe(
      false,
    );
    const next = due(row, timerOf(row));
    expect(
      isQuietCheck({ row: next, observed: seen("True") }, nextRow({ row: next, observed: seen("True") }), now),
    ).toBe(true);
  });
});
