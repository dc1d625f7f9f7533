import { expect, test } from "vitest";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

const hold = { reason: "DeadlineExceeded", at: "2026-11-21T08:00:00.000Z" };
const desired = desiredOf({ attempt: 2 });

test.each<[Phase, string]>([
  ["Applying", "Failed"],
  ["Verifying", "Failed"],
  ["Retrying", "Failed"],
  ["Failed", "Failed"],
  ["Unreachable", "Failed"],
  ["Reachable", "Failed"],
  ["Ready", "Ready"],
  ["Gone", "Gone"],
])("a Sync in the phase %s has that state, and the state %s if the planner paused it", (phase, paused) => {
  const observed = observedOf({ attempt: 2, phase });
  expect(syncStateOf({ desired, observed })).toBe(phase);
  expect(syncStateOf({ desired, observed, paused: hold })).toBe(paused);
});

test("an observation of an earlier attempt does not count for the newest one", () => {
  const observed = observedOf({ attempt: 1, phase: "Ready" });
  expect(syncStateOf({ desired, observed })).toBe("Assigned");
  expect(syncStateOf({ desired, observed, paused: hold })).toBe("Failed");
  expect(syncStateOf({ desired })).toBe("Assigned");
  expect(syncStateOf({ desired, paused: hold })).toBe("Failed");
});

test.each<[Phase, string]>([
  ["Applying", "Assigned"],
  ["Verifying", "Assigned"],
  ["Retrying", "Assigned"],
  ["Unreachable", "Assigned"],
  ["Ready", "Ready"],
])("a Sync in the phase %s that a freeze or a closed window paused has the state %s", (phase, state) => {
  for (const paused of [
    { ...hold, freeze: "inc-1" },
    { ...hold, window: true as const },
  ]) {
    expect(syncStateOf({ desired, observed: observedOf({ attempt: 2, phase }), paused })).toBe(state);
    expect(syncStateOf({ desired, observed: observedOf({ attempt: 1, phase }), paused })).toBe("Assigned");
    expect(syncStateOf({ desired, paused })).toBe("Assigned");
  }
});

test.each<[Phase, string]>([
  ["Applying", "Rejected"],
  ["Failed", "Rejected"],
  ["Ready", "Ready"],
])("a Sync in the phase %s whose rollout was rejected before its begin has the state %s", (phase, state) => {
  const paused = { ...hold, rejected: true as const };
  expect(syncStateOf({ desired, observed: observedOf({ attempt: 2, phase }), paused })).toBe(state);
  expect(syncStateOf({ desired, observed: observedOf({ attempt: 1, phase }), paused })).toBe("Rejected");
  expect(syncStateOf({ desired, paused })).toBe("Rejected");
});

test("a forgotten Sync has the state Orphaned", () => {
  const observed = observedOf({ attempt: 2, phase: "Ready" });
  expect(syncStateOf({ desired: desiredOf({ attempt: 2, action: "orphan" }), observed, paused: hold })).toBe(
    "Orphaned",
  );
});
