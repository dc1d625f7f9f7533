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

describe("what is written about a look", () => {
  test("begins with the first look at an attempt", () => {
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

  test("counts tries only while phase and reason stay", () => {
    const before = { phase: "Verifying", reason: "Verifying", tries: 2, since: at, startedAt: at } as const;
    expect(seen(before, finding("Verifying"), 9)).toMatchObject({ tries: 3, since: at, startedAt: at });
    expect(seen(before, finding("Verifying", { reason: reportedReason("Other") }), 9)).toMatchObject({
      tries: 0,
      since: later(at, 9),
    });
    expect(seen(before, finding("Ready"), 9)).toMatchObject({ tries: 0, since: later(at, 9), startedAt: at });
  });

  test("remembers in this attempt when the store denied something last", () => {
    const denied = finding("Retrying", { reason: reportedReason("BlobDenied") });
    expect(seen({ attempt: 2, deniedAt: at }, denied, 9)).toHaveProperty("deniedAt", later(at, 9));
    expect(seen({ attempt: 2, deniedAt: at }, finding("Applying"), 9)).toHaveProperty("deniedAt", at);
    expect(seen({ attempt: 1, deniedAt: at }, finding("Applying"), 9)).not.toHaveProperty("deniedAt");
  });

  describe("of progress", () => {
    const objects = (ready: number) => ({ total: 9, ready, failed: 0, foreign: 0 });
    const progress = { at, applied: 4, ready: 2 };

    test.each<[string, Partial<Finding>, Observed["progress"]]>([
      ["more that was applied counts", { done: 5 }, { at: later(at, 9), applied: 5, ready: 2 }],
      ["more that is ready counts", { objects: objects(3) }, { at: later(at, 9), applied: 4, ready: 3 }],
      ["as much as before does not", { done: 4, objects: objects(2) }, progress],
      ["what was lost and comes back does not", { done: 1, objects: objects(2) }, progress],
      ["a look that counted nothing does not", {}, progress],
    ])("%s", (_name, found, expected) => {
      expect(seen({ progress }, finding("Applying", found), 9).progress).toEqual(expected);
    });

    test("an attempt begins with none", () => {
      expect(seen(undefined, finding("Applying"))).not.toHaveProperty("progress");
      expect(seen(undefined, finding("Applying", { done: 1 })).progress).toEqual({ at, applied: 1, ready: 0 });
      expect(seen({ attempt: 1, progress }, finding("Applying"), 9)).not.toHaveProperty("progress");
      const anew = seen({ attempt: 1, progress }, finding("Verifying", { done: 1, objects: objects(1) }), 9);
      expect(anew.progress).toEqual({ at: later(at, 9), applied: 1, ready: 1 });
    });
  });

  test("remembers that the attempt was ready once", () => {
    expect(seen(undefined, finding("Verifying"))).not.toHaveProperty("readyAt");
    expect(seen(undefined, finding("Ready"))).toHaveProperty("readyAt", at);
    expect(seen({ readyAt: at }, finding("Ready"), 9)).toHaveProperty("readyAt", at);
    expect(seen({ readyAt: at }, finding("Unreachable"), 9)).toHaveProperty("readyAt", at);
    expect(seen({ attempt: 1, readyAt: at }, finding("Applying"), 9)).not.toHaveProperty("readyAt");
  });

  test("begins anew with a new attempt, keeps what the cluster holds, and counts nothing of it", () => {
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

  test("keeps five troubles, and forgets what is not said again", () => {
    const problems = Array.from({ length: 8 }, (_, index) => ({ object: `o${index}`, reason: "r", message: "" }));
    expect(seen(undefined, finding("Verifying", { problems })).problems).toEqual(problems.slice(0, 5));
    expect(seen({ problems, failedSince: at }, finding("Ready"))).not.toHaveProperty("failedSince");
    expect(seen({ problems }, finding("Ready")).problems).toEqual([]);
  });

  test("says which reconcile it answers", () => {
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
  ])("in the phase %s after %i tries looks again in %s seconds", (phase, tries, seconds) => {
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
  "a cluster in the phase %s after %i tries that asks for %i seconds is looked at in %s",
  (phase, tries, asked, seconds) => {
    const before = observedOf({ attempt: 2, phase, reason: phase, tries: tries - 1 });
    const row = { desired: desiredOf({ attempt: 2 }), ...(tries === 0 ? {} : { observed: before }) };
    const next = observe(row, { ...finding(phase), notBeforeSeconds: asked }, { now: new Date(at), fence: 1 });
    expect(next.nextAt).toBe(seconds === undefined ? undefined : later(at, seconds));
  },
);

test("what is not ready is looked at no later than its interval", () => {
  const often = desiredOf({ attempt: 2, apply: applyOptions.parse({ interval: "10s" }) });
  const before = observedOf({ attempt: 2, phase: "Verifying", reason: "Verifying", tries: 9 });
  const next = observe({ desired: often, observed: before }, finding("Verifying"), { now: new Date(at), fence: 1 });
  expect(next.nextAt).toBe(later(at, 10));
});

test("warnings of an attempt gather, each once, at most five, as short lines", () => {
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

test("what is left alone is kept by looks that could not see it, and is drift", () => {
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

test("when drift was looked for is kept while the attempt is", () => {
  const inspected = seen({ phase: "Verifying" }, finding("Verifying", { inspected: true }));
  expect(inspected.inspectedAt).toBe(at);
  expect(seen(inspected, finding("Verifying"), 9).inspectedAt).toBe(at);
  expect(seen({ ...inspected, attempt: 1 }, finding("Applying"), 9)).not.toHaveProperty("inspectedAt");
});

describe("its conditions", () => {
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
  ])("in the phase %s: Ready %s, Reconciling %s, Stalled %s", (phase, Ready, Reconciling, Stalled) => {
    expect(statuses(phase)).toEqual({ Ready, Reconciling, Stalled, Drifted: "False" });
  });

  test.each([
    [{ objects: 1, corrected: false }, "True"],
    [{ objects: 1, corrected: true }, "False"],
    [{ objects: 0, corrected: false }, "False"],
  ])("drift %j: Drifted %s", (drift, status) => {
    expect(statuses("Ready", { drift: { at, ...drift } })).toMatchObject({ Drifted: status });
  });

  test.each<[string, Finding["applied"], string, string]>([
    ["nothing", undefined, "Unknown", "NotApplied"],
    ["another rendering", { ...applied, renderDigest: "sha256:old" }, "Unknown", "NotApplied"],
    ["what is wanted", applied, "False", "InSync"],
  ])("Drifted, where %s was applied whole", (_what, whole, status, reason) => {
    const more = whole === undefined ? {} : { applied: whole };
    for (const phase of ["Applying", "Retrying", "Failed", "Unreachable"] as const) {
      const { conditions } = seen(undefined, finding(phase, more));
      expect(conditions.find(({ type }) => type === "Drifted")).toMatchObject({ status, reason });
      // It stays so for as long as nothing else is applied.
      const later = seen(seen(undefined, finding("Verifying", more)), finding(phase), 10);
      expect(later.conditions.find(({ type }) => type === "Drifted")).toMatchObject({ status, reason });
    }
  });

  test("Drifted stays what the last look that compared found, whatever the others come to", () => {
    const drift = { at, objects: 1, corrected: false };
    const told = ({ conditions }: Observed) => conditions.find(({ type }) => type === "Drifted");
    const drifted = seen(undefined, finding("Ready", { applied, inspected: true, drift }));
    for (const phase of ["Verifying", "Ready", "Unreachable", "Failed"] as const) {
      expect(told(seen(drifted, finding(phase), 10))).toEqual(told(drifted));
    }
    expect(told(seen(drifted, finding("Ready", { inspected: true }), 10))).toMatchObject({ status: "False" });
    const partly = seen(drifted, finding("Ready", { inspected: true, notCompared: "Widget: forbidden" }), 10);
    expect(told(partly)).toMatchObject({ status: "Unknown", reason: "NotCompared" });
    expect(told(seen(partly, finding("Unreachable"), 20))).toEqual(told(partly));
    expect(told(seen({ ...drifted, attempt: 1 }, finding("Ready", { applied }), 10))).toMatchObject({
      status: "False",
    });
  });

  test("Drifted is not known where nobody compares", () => {
    const off = { ...desired, apply: { ...applyOptions.parse({}), drift: "off" as const } };
    const { conditions } = observe({ desired: off }, finding("Ready", { applied }), { now: new Date(at), fence: 3 });
    expect(conditions.find(({ type }) => type === "Drifted")).toMatchObject({
      status: "Unknown",
      reason: "NotCompared",
    });
  });

  test("keep since when they are so", () => {
    const first = seen(undefined, finding("Verifying"));
    const second = seen(first, finding("Verifying", { reason: reportedReason("Other") }), 10);
    const third = seen(second, finding("Ready"), 20);
    const since = (observed: Observed) => observed.conditions.find((one) => one.type === "Ready")?.since;
    expect([since(first), since(second), since(third)]).toEqual([at, at, later(at, 20)]);
  });
});

describe("health", () => {
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

  test("is Ready when every object is, also when there are none", () => {
    expect(found(undefined, health({}))).toMatchObject({ phase: "Ready", message: "3 objects ready", problems: [] });
    expect(found(undefined, health({ total: 0, ready: 0 }))).toMatchObject({ phase: "Ready" });
  });

  test("is on its way while nothing has failed, with what is not ready", () => {
    expect(found(undefined, health({ ready: 1, worst: "InProgress" }))).toMatchObject({
      phase: "Verifying",
      reason: "NotReady",
      message: "1 of 3 objects ready",
      problems: [{ object: "Deployment a/b" }],
    });
  });

  test("fails only after it was failed for a minute without interruption", () => {
    const bad = health({ ready: 2, failed: 1, worst: "Failed" });
    const first = found(undefined, bad);
    expect(first).toMatchObject({ phase: "Verifying", failedSince: at });
    expect(found({ failedSince: at }, bad, 59)).toMatchObject({ phase: "Verifying", failedSince: at });
    expect(found({ failedSince: at }, bad, 60)).toMatchObject({ phase: "Failed", reason: "ObjectsFailed" });
    expect(found({ failedSince: at }, health({ ready: 2, worst: "InProgress" }), 59)).not.toHaveProperty("failedSince");
  });

  test("of an earlier attempt does not count", () => {
    const bad = health({ failed: 1, worst: "Failed" });
    expect(found({ attempt: 1, failedSince: at }, bad, 3600)).toMatchObject({
      phase: "Verifying",
      failedSince: later(at, 3600),
    });
  });
});
