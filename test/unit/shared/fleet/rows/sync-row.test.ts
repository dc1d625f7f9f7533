import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { later } from "#shared/fleet/rows/due.ts";
import {
  isAsked,
  isAway,
  isDenied,
  isInspectionDue,
  isOfAnother,
  isOutstanding,
  orphaning,
  type Phase,
} from "#shared/fleet/rows/sync-row.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const row = (more: Parameters<typeof observedOf>[0] | undefined, desired = desiredOf({ attempt: 2 })) => ({
  uid: "u",
  desired,
  ...(more === undefined ? {} : { observed: observedOf({ attempt: 2, at, ...more }) }),
});

describe("the inspection for drift while an object is not ready", () => {
  const options = applyOptions.parse({ interval: "10m" });
  const whole = { renderDigest: "sha256:1", revision: "r", attempt: 2, at };
  const waiting = row({ phase: "Verifying", applied: whole }, desiredOf({ attempt: 2, apply: options }));
  const off = row(
    { phase: "Verifying", applied: whole },
    desiredOf({ attempt: 2, apply: { ...options, drift: "off" } }),
  );
  const handled = row(
    { phase: "Verifying", applied: whole, handledReconcile: 1 },
    desiredOf({ attempt: 2, apply: options }),
  );
  const inspected = { ...waiting, observed: { ...waiting.observed, inspectedAt: later(at, 600) } } as typeof waiting;

  test.each<[string, Parameters<typeof isInspectionDue>[0], number, boolean]>([
    ["before the end of its interval", waiting, 569, false],
    ["after its interval", waiting, 631, true],
    ["one millisecond before its jittered interval ends", waiting, 590.999, false],
    ["when its jittered interval ends", waiting, 591, true],
    ["before the interval after its inspection ends", inspected, 1169, false],
    ["after the interval since its inspection", inspected, 1231, true],
    ["with a request", { ...waiting, reconcile: 1 }, 1, true],
    ["with an answered request", { ...handled, reconcile: 1 }, 1, false],
    ["with drift turned off, and a request", { ...off, reconcile: 1 }, 5000, false],
    ["before anything was applied", row({ phase: "Verifying" }), 5000, false],
  ])("an inspection of a Sync %s is due: %s", (_name, row, seconds, due) => {
    expect(isInspectionDue(row, new Date(later(at, seconds)))).toBe(due);
  });

  test("inspections are spread around the end of the interval", () => {
    const then = new Date(later(at, 600));
    const due = Array.from({ length: 50 }, (_, index) => isInspectionDue({ ...waiting, uid: `u${index}` }, then));
    expect([due.filter((each) => each).length > 5, due.filter((each) => !each).length > 5]).toEqual([true, true]);
  });
});

test.each<[string, number | undefined, number | undefined, boolean]>([
  ["that was not requested", undefined, undefined, false],
  ["whose request is gone", undefined, 3, false],
  ["that was requested", 3, undefined, true],
  ["that was requested again", 4, 3, true],
  ["that was done", 3, 3, false],
])("a check %s is outstanding: %j", (_name, reconcile, handled, expected) => {
  const checked = row(handled === undefined ? {} : { handledReconcile: handled });
  expect(isAsked(reconcile === undefined ? checked : { ...checked, reconcile })).toBe(expected);
});

test("a request from before the first observation is outstanding", () => {
  expect(isAsked({ ...row(undefined), reconcile: 1 })).toBe(true);
});

test.each<[Phase, string, boolean]>([
  ["Retrying", "BlobDenied", true],
  ["Retrying", "ApplyFailed", false],
  ["Failed", "BlobDenied", false],
])("a Sync in %s because of %s is denied its blobs: %s", (phase, reason, denied) => {
  expect(isDenied(observedOf({ phase, reason }))).toBe(denied);
});

test("a Sync without an observation is not denied its blobs", () => {
  expect(isDenied(undefined)).toBe(false);
});

test.each<[Phase, boolean]>([
  ["Applying", true],
  ["Verifying", true],
  ["Retrying", true],
  ["Unreachable", true],
  ["Reachable", true],
  ["Ready", false],
  ["Failed", false],
  ["Gone", false],
])("a Sync that is %s is outstanding: %s", (phase, outstanding) => {
  expect(isOutstanding(row({ phase }))).toBe(outstanding);
  expect(isOutstanding(row({ phase, attempt: 1 }))).toBe(true);
  expect(isOutstanding(row({ phase, attempt: 1 }, desiredOf({ attempt: 2, action: "orphan" })))).toBe(false);
});

test("orphaning a Sync is an assignment of its own, without a rendering", () => {
  const before = desiredOf({ attempt: 4, renderDigest: "sha256:aa" });
  expect(orphaning(before, { rollout: 9, assignedAt: at })).toEqual({
    action: "orphan",
    attempt: 5,
    revision: before.revision,
    apply: before.apply,
    rollout: 9,
    assignedAt: at,
  });
});

test.each<[Phase, boolean]>([
  ["Applying", false],
  ["Verifying", false],
  ["Ready", false],
  ["Retrying", false],
  ["Failed", false],
  ["Unreachable", true],
  ["Reachable", true],
  ["Gone", false],
])("a Sync that is %s is away: %s", (phase, paused) => {
  expect(isAway(row({ phase }))).toBe(paused);
  expect(isAway(row({ phase, attempt: 1 }))).toBe(false);
});

test("a Sync without an observation is not away", () => {
  expect(isAway(row(undefined))).toBe(false);
});

test.each<[string, string | undefined, string | undefined, boolean]>([
  ["the same cluster", "u1", "u1", false],
  ["another cluster", "u1", "u2", true],
  ["a cluster that is not known yet", "u1", undefined, true],
  ["no cluster yet", undefined, "u1", false],
  ["no cluster yet, and none is known", undefined, undefined, false],
])("an observation of %s belongs to another cluster: %s", (_name, seen, expected, another) => {
  expect(isOfAnother(row(seen === undefined ? {} : { clusterUid: seen }), expected)).toBe(another);
});

const applied = { renderDigest: "sha256:aaa", revision: "main@sha1:aaa", attempt: 1, at };
test.each<[string, Parameters<typeof observedOf>[0], boolean]>([
  ["an inventory", { inventory: "sha256:bb" }, true],
  ["a rendering", { applied }, true],
  ["nothing but a check", {}, false],
  ["an inventory of this cluster", { inventory: "sha256:bb", applied, clusterUid: "u1" }, false],
])("an observation with %s belongs to another cluster: %j", (_name, observed, another) => {
  expect(isOfAnother(row(observed), "u1")).toBe(another);
});

test("a Sync without an observation belongs to no other cluster", () => {
  expect(isOfAnother(row(undefined), "u1")).toBe(false);
});
