import { describe, expect, test } from "vitest";
import { nextRow } from "#functions/apply/worker/look-outcome.ts";
import { due, dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { timerOf } from "#shared/fleet/rows/next-work.ts";
import { observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const nextAt = "2026-11-21T08:10:00.000Z";
const onward = (seconds: number) => later(nextAt, seconds);
const onTheWay = observedOf({ phase: "Verifying", reason: "NotReady", nextAt });

/** When the row is due that a look leaves, of one that was due at a time. */
function timerAfter(set: string | undefined, observed = onTheWay): string {
  const row = due(syncRowOf("c1"), set, 3);
  const next = nextRow({ row, observed });
  expect(next.dispatches).toBe(0);
  return dueAtOf(next.dueKey ?? "");
}

describe("a Sync for which a message about its next look is sent", () => {
  test.each([
    ["was due at no time", undefined, onward(30)],
    ["was due before that look", onward(-5), onward(30)],
    ["was due a moment after it", onward(9.999), onward(30)],
    ["was due a while after it", onward(10), onward(10)],
    ["was due a moment before a new watchdog", onward(29.999), onward(29.999)],
    ["was due long after it", onward(600), onward(30)],
  ])("that %s", (_what, set, expected) => {
    expect(timerAfter(set)).toBe(expected);
  });
});

test("a Sync at rest has its own timer, whatever was set", () => {
  const ready = observedOf({ phase: "Ready" });
  const own = timerOf({ ...syncRowOf("c1"), observed: ready });
  expect(timerAfter(onward(20), ready)).toBe(own);
});
