import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { deadlineOf, isChanging, isPreexisting, isUnchanged, judge } from "#shared/fleet/rollout/judge.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Desired, Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const strategy = rolloutStrategy.parse({ progressDeadline: "10m" });
const digest = "sha256:new";
const applied = { renderDigest: digest, revision: "r", attempt: 2, at };

function target(attempts: Readonly<Record<string, number>>): TargetRow {
  return {
    pk: "p",
    sk: "s",
    type: "Target",
    schema: 1,
    version: 1,
    order: 0,
    cluster: "c1",
    stage: 0,
    state: "Assigned",
    reason: "",
    inputs: [],
    attempts,
    assignedAt: at,
  };
}

interface Seen {
  readonly template?: string;
  readonly desired?: Partial<Desired>;
  readonly observed?: Partial<Observed>;
}
const sync = ({ template = "app", desired, observed }: Seen): SyncRow =>
  syncRowOf("c1", {
    template,
    desired: { attempt: 2, renderDigest: digest, ...desired },
    ...defined({ observed }),
  });

/** @param seconds - since the assignment. */
function verdict(seen: readonly Seen[], seconds = 0, clock: { pausedAt?: string; resumedAt?: string } = {}) {
  const attempts = Object.fromEntries(seen.map((one) => [`web.${one.template ?? "app"}`, 2]));
  return judge(target(attempts), seen.map(sync), { strategy, now: new Date(later(at, seconds)), ...clock });
}

const ready = { phase: "Ready", applied } as const;

describe("a target", () => {
  test.each<[string, readonly Seen[], string, string?]>([
    ["nobody has worked on", [{}], "Assigned", "waiting for the cluster's worker"],
    ["observed before it was assigned", [{ observed: { ...ready, attempt: 1 } }], "Assigned"],
    ["being applied", [{ observed: { phase: "Applying", reason: "Applying" } }], "Applying", "Applying"],
    [
      "tried again",
      [{ observed: { phase: "Retrying", reason: "Timeout", message: "slow" } }],
      "Applying",
      "Timeout: slow",
    ],
    ["applied and not ready", [{ observed: { phase: "Verifying", applied } }], "Verifying"],
    ["ready", [{ observed: ready }], "Succeeded"],
    [
      "ready with another rendering",
      [{ observed: { phase: "Ready", applied: { ...applied, renderDigest: "x" } } }],
      "Applying",
    ],
    ["ready with nothing applied", [{ observed: { phase: "Ready" } }], "Applying"],
    ["failed", [{ observed: { phase: "Failed", reason: "Invalid" } }], "Failed", "Invalid"],
    ["that does not answer", [{ observed: { phase: "Unreachable", reason: "Unreachable" } }], "Unreachable"],
    ["that answers again", [{ observed: { phase: "Reachable" } }], "Waiting", "answers again"],
    ["to be deleted, and not gone", [{ desired: { action: "delete" }, observed: ready }], "Applying"],
    ["that is gone as it should", [{ desired: { action: "delete" }, observed: { phase: "Gone" } }], "Succeeded"],
    ["to be forgotten", [{ desired: { action: "orphan" } }], "Succeeded"],
    ["of which one part is begun", [{ observed: ready }, { template: "b" }], "Applying"],
    [
      "of which one part is verified",
      [{ observed: ready }, { template: "b", observed: { phase: "Verifying" } }],
      "Verifying",
    ],
    ["whose parts are all ready", [{ observed: ready }, { template: "b", observed: ready }], "Succeeded"],
    ["with one failed part", [{ observed: ready }, { template: "b", observed: { phase: "Failed" } }], "Failed"],
    [
      "with one failed part and one away",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: { phase: "Failed" } }],
      "Failed",
    ],
  ])("%s is %s", (_name, seen, state, reason) => {
    expect(verdict(seen)).toMatchObject(reason === undefined ? { state } : { state, reason });
  });

  test("shows its worst object", () => {
    const troubles = [{ object: "Deployment shop/web", reason: "ImagePullBackOff", message: "no such image" }];
    const observed = { phase: "Verifying", reason: "NotReady", applied, troubles } as const;
    expect(verdict([{ observed }]).reason).toBe("Deployment shop/web: ImagePullBackOff (no such image)");
  });

  test("whose assignment is gone waits for another one", () => {
    const clock = { strategy, now: new Date(at) };
    expect(judge(target({ "web.app": 2 }), [], clock).state).toBe("Waiting");
    expect(judge(target({ "web.app": 2 }), [sync({ desired: { attempt: 3 } })], clock).state).toBe("Waiting");
  });
});

describe("the deadline", () => {
  const moving: readonly Seen[] = [{ observed: { phase: "Verifying", reason: "NotReady", applied } }];
  test.each<[string, readonly Seen[], number, object, string]>([
    ["is not over before it", moving, 599, {}, "Verifying"],
    ["fails what is not done", moving, 600, {}, "Failed"],
    ["fails what nobody began", [{}], 600, {}, "Failed"],
    ["does not undo what is done", [{ observed: ready }], 6000, {}, "Succeeded"],
    ["does not run for who does not answer", [{ observed: { phase: "Unreachable" } }], 6000, {}, "Unreachable"],
    ["does not run while suspended", moving, 6000, { pausedAt: later(at, 5) }, "Verifying"],
    ["starts anew after a suspension", moving, 1100, { resumedAt: later(at, 501) }, "Verifying"],
    ["and ends then", moving, 1101, { resumedAt: later(at, 501) }, "Failed"],
    ["does not start anew by a suspension before it", moving, 600, { resumedAt: later(at, -5) }, "Failed"],
  ])("%s", (_name, seen, seconds, clock, state) => {
    expect(verdict(seen, seconds, clock).state).toBe(state);
  });

  test("fails no target for what the store denies, and the others all the same", () => {
    const denied = { observed: { phase: "Retrying", reason: "BlobDenied", message: "S3 denied a" } } as const;
    expect(verdict([denied], 6000)).toEqual({ state: "Applying", reason: "BlobDenied: S3 denied a" });
    expect(verdict([denied, { ...moving[0], template: "b" }], 6000).state).toBe("Failed");
    const goesOn = { observed: { phase: "Verifying", reason: "NotReady", deniedAt: later(at, 5400) } } as const;
    expect(verdict([goesOn], 5999).state).toBe("Verifying");
    expect(verdict([goesOn], 6000).state).toBe("Failed");
  });

  test("says what was waited for", () => {
    expect(verdict(moving, 600).reason).toBe("DeadlineExceeded: NotReady");
  });

  test("of what was never assigned is none", () => {
    expect(deadlineOf({}, { strategy })).toBeUndefined();
  });
});

test.each<[Phase, number, boolean]>([
  ["Applying", 2, true],
  ["Ready", 2, false],
  ["Failed", 2, false],
  ["Unreachable", 2, false],
  ["Reachable", 2, false],
  ["Unreachable", 1, true],
  ["Ready", 1, true],
])("observed %s of attempt %i, the cluster may be changing for attempt 2: %s", (phase, attempt, changing) => {
  expect(isChanging(sync({ observed: { phase, attempt } }))).toBe(changing);
});

describe("nothing needs to be sent", () => {
  const wanted = { renderDigest: digest, apply: applyOptions.parse({}) };
  test.each<[string, SyncRow | undefined, boolean]>([
    ["to who has it", sync({ observed: ready }), true],
    ["to who was assigned nothing", undefined, false],
    ["to who has another rendering", sync({ desired: { renderDigest: "x" }, observed: ready }), false],
    [
      "to who has other options",
      sync({ desired: { apply: applyOptions.parse({ prune: false }) }, observed: ready }),
      false,
    ],
    ["to who is not ready", sync({ observed: { phase: "Verifying", applied } }), false],
    ["to who was ready before", sync({ observed: { ...ready, attempt: 1 } }), false],
    ["to who is to be deleted", sync({ desired: { action: "delete" }, observed: ready }), false],
  ])("%s", (_name, row, unchanged) => {
    expect(isUnchanged(row, wanted)).toBe(unchanged);
  });
});

test.each<[string, SyncRow | undefined, number | undefined, boolean]>([
  [
    "not ready after the last complete rollout",
    sync({ desired: { rollout: 3 }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  ["ready after it", sync({ desired: { rollout: 3 }, observed: ready }), 3, false],
  [
    "broken by a rollout that did not complete",
    sync({ desired: { rollout: 4 }, observed: { phase: "Failed" } }),
    3,
    false,
  ],
  ["never looked at", sync({ desired: { rollout: 3 } }), 3, false],
  ["not ready, and no rollout ever completed", sync({ observed: { phase: "Failed" } }), undefined, false],
  ["new", undefined, 3, false],
])("a cluster %s counts as broken before: rollout %s, %s, %s", (_name, row, completed, preexisting) => {
  expect(isPreexisting(row, completed)).toBe(preexisting);
});
