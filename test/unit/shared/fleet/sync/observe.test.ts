import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Observed, Phase } from "#shared/fleet/rows/sync-row.ts";
import { type Finding, healthFinding, observe, type SeenHealth } from "#shared/fleet/sync/observe.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
import { desiredOf, observedOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const desired = desiredOf({ attempt: 2 });
const finding = (phase: Phase, more: Partial<Finding> = {}): Finding => ({
  phase,
  reason: phase,
  message: "",
  ...more,
});
const seen = (observed: Partial<Observed> | undefined, found: Finding, seconds = 0) =>
  observe(
    { desired, ...(observed === undefined ? {} : { observed: observedOf({ attempt: 2, ...observed }) }) },
    found,
    { now: new Date(later(at, seconds)), fence: 3 },
  );

describe("the observation of a check", () => {
  test("an observation begins with the first check of an attempt", () => {
    expect(seen(undefined, finding("Applying"))).toMatchObject({
      attempt: 2,
      startedAt: at,
      since: at,
      at,
      tries: 0,
      fence: 3,
      objects: { total: 0, ready: 0, failed: 0, foreign: 0 },
      nextAt: later(at, 1),
    });
  });

  test("tries are counted only while phase and reason stay", () => {
    const before = { phase: "Verifying", reason: "Verifying", tries: 2, since: at, startedAt: at } as const;
    expect(seen(before, finding("Verifying"), 9)).toMatchObject({ tries: 3, since: at, startedAt: at });
    expect(seen(before, finding("Verifying", { reason: reportedReason("Other") }), 9)).toMatchObject({
      tries: 0,
      since: later(at, 9),
    });
    expect(seen(before, finding("Ready"), 9)).toMatchObject({ tries: 0, since: later(at, 9), startedAt: at });
  });

  test("the observation remembers, for this attempt, when the store last denied something", () => {
    const denied = finding("Retrying", { reason: reportedReason("BlobDenied") });
    expect(seen({ attempt: 2, deniedAt: at }, denied, 9)).toHaveProperty("deniedAt", later(at, 9));
    expect(seen({ attempt: 2, deniedAt: at }, finding("Applying"), 9)).toHaveProperty("deniedAt", at);
    expect(seen({ attempt: 1, deniedAt: at }, finding("Applying"), 9)).not.toHaveProperty("deniedAt");
  });

  describe("the progress of an attempt", () => {
    const objects = (ready: number) => ({ total: 9, ready, failed: 0, foreign: 0 });
    const progress = { at, applied: 4, ready: 2 };

    test.each<[string, Partial<Finding>, Observed["progress"]]>([
      ["more applied objects count", { done: 5 }, { at: later(at, 9), applied: 5, ready: 2 }],
      ["more ready objects count", { objects: objects(3) }, { at: later(at, 9), applied: 4, ready: 3 }],
      ["as many objects as before do not count", { done: 4, objects: objects(2) }, progress],
      ["objects that were lost and return do not count", { done: 1, objects: objects(2) }, progress],
      ["a check that counted nothing does not count", {}, progress],
    ])("progress of an attempt: %s", (_name, found, expected) => {
      expect(seen({ progress }, finding("Applying", found), 9).progress).toEqual(expected);
    });

    test("an attempt begins without progress", () => {
      expect(seen(undefined, finding("Applying"))).not.toHaveProperty("progress");
      expect(seen(undefined, finding("Applying", { done: 1 })).progress).toEqual({ at, applied: 1, ready: 0 });
      expect(seen({ attempt: 1, progress }, finding("Applying"), 9)).not.toHaveProperty("progress");
      const anew = seen({ attempt: 1, progress }, finding("Verifying", { done: 1, objects: objects(1) }), 9);
      expect(anew.progress).toEqual({ at: later(at, 9), applied: 1, ready: 1 });
    });
  });

  test("the observation remembers when the attempt was first ready", () => {
    expect(seen(undefined, finding("Verifying"))).not.toHaveProperty("readyAt");
    expect(seen(undefined, finding("Ready"))).toHaveProperty("readyAt", at);
    expect(seen({ readyAt: at }, finding("Ready"), 9)).toHaveProperty("readyAt", at);
    expect(seen({ readyAt: at }, finding("Unreachable"), 9)).toHaveProperty("readyAt", at);
    expect(seen({ attempt: 1, readyAt: at }, finding("Applying"), 9)).not.toHaveProperty("readyAt");
  });

  test("a new attempt starts its counts again, keeps what the cluster has, and does not count that", () => {
    const applied = { renderDigest: "sha256:old", revision: "r", attempt: 1, at };
    const objects = { total: 4, ready: 3, failed: 0, foreign: 1 };
    const before = {
      attempt: 1,
      phase: "Applying",
      reason: "Applying",
      tries: 7,
      applied,
      inventory: "i",
      objects,
    } as const;
    expect(seen(before, finding("Applying"), 5)).toMatchObject({
      attempt: 2,
      tries: 0,
      since: later(at, 5),
      startedAt: later(at, 5),
      applied,
      inventory: "i",
      objects: { total: 0, ready: 0, failed: 0, foreign: 1 },
    });
    expect(seen({ ...before, attempt: 2 }, finding("Applying"), 5)).toMatchObject({ objects });
  });

  test("an observation keeps five problems, and drops those that are not reported again", () => {
    const problems = Array.from({ length: 8 }, (_, index) => ({ object: `o${index}`, reason: "r", message: "" }));
    expect(seen(undefined, finding("Verifying", { problems })).problems).toEqual(problems.slice(0, 5));
    expect(seen({ problems, failedSince: at }, finding("Ready"))).not.toHaveProperty("failedSince");
    expect(seen({ problems }, finding("Ready")).problems).toEqual([]);
  });

  test("an observation names the reconcile that it answers", () => {
    const row = { desired, reconcile: 4 };
    expect(observe(row, finding("Ready"), { now: new Date(at), fence: 1 }).handledReconcile).toBe(4);
  });

  test.each<[Phase, number, number | undefined]>([
    ["Applying", 0, 1],
    ["Applying", 3, 8],
    ["Applying", 9, 10],
    ["Verifying", 0, 1],
    ["Verifying", 4, 16],
    ["Verifying", 5, 30],
    ["Retrying", 0, 5],
    ["Retrying", 1, 10],
    ["Retrying", 30, 600],
    ["Unreachable", 0, 5],
    ["Unreachable", 30, 300],
    ["Reachable", 0, undefined],
    ["Ready", 5, undefined],
    ["Failed", 5, undefined],
    ["Gone", 0, undefined],
  ])("a Sync in the phase %s after %i tries is checked again in %s seconds", (phase, tries, seconds) => {
    const before = tries === 0 ? undefined : { phase, reason: phase, tries: tries - 1 };
    const observed = seen(before, finding(phase));
    expect(observed.tries).toBe(tries);
    expect(observed.nextAt).toBe(seconds === undefined ? undefined : later(at, seconds));
  });
});

test.each<[Phase, number, number, number | undefined]>([
  ["Retrying", 0, 3, 5],
  ["Retrying", 0, 30, 30],
  ["Retrying", 30, 30, 600],
  ["Retrying", 0, 86_400, 600],
  ["Failed", 0, 30, undefined],
])(
  "a Sync in the phase %s after %i tries, whose cluster asks for %i seconds, is checked again in %s",
  (phase, tries, asked, seconds) => {
    const before = observedOf({ attempt: 2, phase, reason: phase, tries: tries - 1 });
    const row = { desired: desiredOf({ attempt: 2 }), ...(tries === 0 ? {} : { observed: before }) };
    const next = observe(row, { ...finding(phase), notBeforeSeconds: asked }, { now: new Date(at), fence: 1 });
    expect(next.nextAt).toBe(seconds === undefined ? undefined : later(at, seconds));
  },
);

test("a Sync that is not ready is checked after its interval at the latest", () => {
  const often = desiredOf({ attempt: 2, apply: applyOptions.parse({ interval: "10s" }) });
  const before = observedOf({ attempt: 2, phase: "Verifying", reason: "Verifying", tries: 9 });
  const next = observe({ desired: often, observed: before }, finding("Verifying"), { now: new Date(at), fence: 1 });
  expect(next.nextAt).toBe(later(at, 10));
});

test("the warnings of an attempt are collected, each once, at most five, as short lines", () => {
  const warned = (...messages: string[]) => messages.map((message) => ({ object: "ConfigMap a/b", message }));
  const first = seen(undefined, finding("Applying", { warnings: warned("a", "b") }));
  expect(first.warnings).toEqual(warned("a", "b"));
  const next = seen(first, finding("Verifying", { warnings: warned("b", "c", "d", "e", "f") }));
  expect(next.warnings).toEqual(warned("a", "b", "c", "d", "e"));
  expect(seen(next, finding("Ready")).warnings).toEqual(next.warnings);
  expect(seen({ ...next, attempt: 1 }, finding("Applying"))).not.toHaveProperty("warnings");
  const long = seen(undefined, finding("Ready", { warnings: warned(`x\n${"y".repeat(5_000)}`) }));
  expect(long.warnings?.[0]?.message).toMatch(/^x y{997}…$/);
});

test("objects that are left alone stay in observations that could not see them, and count as drift", () => {
  const leftAlone = [{ object: "Deployment a/b", reason: "Drifted", message: "somebody undoes it" }];
  const first = seen(undefined, finding("Ready", { leftAlone }));
  const next = seen(first, finding("Verifying"));
  expect(next.leftAlone).toEqual(leftAlone);
  expect(next.conditions).toContainEqual({
    type: "Drifted",
    status: "True",
    reason: "CorrectionsUndone",
    message: "Deployment a/b: somebody undoes it",
    since: at,
  });
  expect(seen(next, finding("Ready", { leftAlone: [] }))).not.toHaveProperty("leftAlone");
  expect(seen({ ...next, attempt: 1 }, finding("Applying"))).not.toHaveProperty("leftAlone");
});

test("the time of the last inspection is kept during an attempt", () => {
  const inspected = seen({ phase: "Verifying" }, finding("Verifying", { inspected: true }));
  expect(inspected.inspectedAt).toBe(at);
  expect(seen(inspected, finding("Verifying"), 9).inspectedAt).toBe(at);
  expect(seen({ ...inspected, attempt: 1 }, finding("Applying"), 9)).not.toHaveProperty("inspectedAt");
});

describe("the conditions of a Sync", () => {
  const applied = { renderDigest: "sha256:aaa", revision: "main@sha1:aaa", attempt: 1, at };
  const statuses = (phase: Phase, more: Partial<Finding> = {}) =>
    Object.fromEntries(
      seen(undefined, finding(phase, { applied, ...more })).conditions.map((one) => [one.type, one.status]),
    );

  test.each<[Phase, string, string, string]>([
    ["Applying", "False", "True", "False"],
    ["Verifying", "False", "True", "False"],
    ["Retrying", "False", "True", "False"],
    ["Ready", "True", "False", "False"],
    ["Failed", "False", "False", "True"],
    ["Unreachable", "Unknown", "False", "False"],
    ["Gone", "False", "False", "False"],
  ])("a Sync in the phase %s is Ready %s, Reconciling %s, Stalled %s", (phase, Ready, Reconciling, Stalled) => {
    expect(statuses(phase)).toEqual({ Ready, Reconciling, Stalled, Drifted: "False" });
  });

  test.each([
    [{ objects: 1, corrected: false }, "True"],
    [{ objects: 1, corrected: true }, "False"],
    [{ objects: 0, corrected: false }, "False"],
  ])("drift %j makes the condition Drifted %s", (drift, status) => {
    expect(statuses("Ready", { drift: { at, ...drift } })).toMatchObject({ Drifted: status });
  });

  test.each<[string, Finding["applied"], string, string]>([
    ["nothing", undefined, "Unknown", "NotApplied"],
    ["another rendering", { ...applied, renderDigest: "sha256:old" }, "Unknown", "NotApplied"],
    ["the desired rendering", applied, "False", "InSync"],
  ])(
    "the condition Drifted, after %s was completely applied, is %s with the reason %s",
    (_what, whole, status, reason) => {
      const more = whole === undefined ? {} : { applied: whole };
      for (const phase of ["Applying", "Retrying", "Failed", "Unreachable"] as const) {
        const { conditions } = seen(undefined, finding(phase, more));
        expect(conditions.find(({ type }) => type === "Drifted")).toMatchObject({ status, reason });
        // The condition stays as long as nothing else is applied.
        const later = seen(seen(undefined, finding("Verifying", more)), finding(phase), 10);
        expect(later.conditions.find(({ type }) => type === "Drifted")).toMatchObject({ status, reason });
      }
    },
  );

  test("the condition Drifted keeps the result of the last comparison during other checks", () => {
    const drift = { at, objects: 1, corrected: false };
    const driftedOf = ({ conditions }: Observed) => conditions.find(({ type }) => type === "Drifted");
    const drifted = seen(undefined, finding("Ready", { applied, inspected: true, drift }));
    for (const phase of ["Verifying", "Ready", "Unreachable", "Failed"] as const) {
      expect(driftedOf(seen(drifted, finding(phase), 10))).toEqual(driftedOf(drifted));
    }
    expect(driftedOf(seen(drifted, finding("Ready", { inspected: true }), 10))).toMatchObject({ status: "False" });
    const partly = seen(drifted, finding("Ready", { inspected: true, notCompared: "Widget: forbidden" }), 10);
    expect(driftedOf(partly)).toMatchObject({ status: "Unknown", reason: "NotCompared" });
    expect(driftedOf(seen(partly, finding("Unreachable"), 20))).toEqual(driftedOf(partly));
    expect(driftedOf(seen({ ...drifted, attempt: 1 }, finding("Ready", { applied }), 10))).toMatchObject({
      status: "False",
    });
  });

  test("the condition Drifted is Unknown when drift detection is off", () => {
    const off = { ...desired, apply: { ...applyOptions.parse({}), drift: "off" as const } };
    const { conditions } = observe({ desired: off }, finding("Ready", { applied }), { now: new Date(at), fence: 3 });
    expect(conditions.find(({ type }) => type === "Drifted")).toMatchObject({
      status: "Unknown",
      reason: "NotCompared",
    });
  });

  test("conditions keep the time since when they have their status", () => {
    const first = seen(undefined, finding("Verifying"));
    const second = seen(first, finding("Verifying", { reason: reportedReason("Other") }), 10);
    const third = seen(second, finding("Ready"), 20);
    const since = (observed: Observed) => observed.conditions.find((one) => one.type === "Ready")?.since;
    expect([since(first), since(second), since(third)]).toEqual([at, at, later(at, 20)]);
  });
});

describe("the health of a Sync", () => {
  const health = (more: Partial<SeenHealth>): SeenHealth => ({
    total: 3,
    ready: 3,
    failed: 0,
    worst: "Current",
    problems: [{ object: "Deployment a/b", reason: "r", message: "m" }],
    ...more,
  });
  const found = (observed: Partial<Observed> | undefined, seenNow: SeenHealth, seconds = 0) =>
    healthFinding(
      { desired, ...(observed === undefined ? {} : { observed: observedOf({ attempt: 2, ...observed }) }) },
      seenNow,
      new Date(later(at, seconds)),
    );

  test("a Sync is Ready when all of its objects are, also without objects", () => {
    expect(found(undefined, health({}))).toMatchObject({ phase: "Ready", message: "3 objects ready", problems: [] });
    expect(found(undefined, health({ total: 0, ready: 0 }))).toMatchObject({ phase: "Ready" });
  });

  test("a Sync is Verifying while nothing has failed, and lists the objects that are not ready", () => {
    expect(found(undefined, health({ ready: 1, worst: "InProgress" }))).toMatchObject({
      phase: "Verifying",
      reason: "NotReady",
      message: "1 of 3 objects ready",
      problems: [{ object: "Deployment a/b" }],
    });
  });

  test("a Sync fails only after its objects have failed for a minute without interruption", () => {
    const bad = health({ ready: 2, failed: 1, worst: "Failed" });
    const first = found(undefined, bad);
    expect(first).toMatchObject({ phase: "Verifying", failedSince: at });
    expect(found({ failedSince: at }, bad, 59)).toMatchObject({ phase: "Verifying", failedSince: at });
    expect(found({ failedSince: at }, bad, 60)).toMatchObject({ phase: "Failed", reason: "ObjectsFailed" });
    expect(found({ failedSince: at }, health({ ready: 2, worst: "InProgress" }), 59)).not.toHaveProperty("failedSince");
  });

  test("the failure of an earlier attempt does not count", () => {
    const bad = health({ failed: 1, worst: "Failed" });
    expect(found({ attempt: 1, failedSince: at }, bad, 3600)).toMatchObject({
      phase: "Verifying",
      failedSince: later(at, 3600),
    });
  });
});
