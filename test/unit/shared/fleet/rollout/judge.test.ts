import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { Deadlines } from "#shared/fleet/rollout/facts.ts";
import {
  deadlineOf,
  isNewestAssignment,
  isPreexisting,
  isReplaceable,
  isUnchanged,
  judge,
} from "#shared/fleet/rollout/judge.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Desired, Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const progressSeconds = 600;
const digest = "sha256:new";
const applied = { renderDigest: digest, revision: "r", attempt: 2, at };

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

type Clock = Partial<Deadlines> & { readonly unwritten?: true };

/** @param seconds - the time since the assignment, which its worker started at once. */
function verdict(seen: readonly Seen[], seconds = 0, { unwritten, ...clock }: Clock = {}) {
  const attempts = Object.fromEntries(seen.map((one) => [`web.${one.template ?? "app"}`, 2]));
  const now = new Date(later(at, seconds));
  return judge({ attempts, ...defined({ unwritten }) }, seen.map(sync), { progressSeconds, now, ...clock });
}

const ready = { phase: "Ready", applied } as const;

describe("the verdict about a cluster with a slot", () => {
  test.each<[string, readonly Seen[], string, string?]>([
    ["that no worker has started", [{}], "Assigned", "waiting for the cluster's worker"],
    ["with an observation of an earlier attempt", [{ observed: { ...ready, attempt: 1 } }], "Assigned"],
    [
      "whose objects are being applied",
      [{ observed: { phase: "Applying", reason: "Applying" } }],
      "Assigned",
      "Applying",
    ],
    [
      "that is tried again",
      [{ observed: { phase: "Retrying", reason: "Timeout", message: "slow" } }],
      "Assigned",
      "Timeout: slow",
    ],
    ["that is applied and not ready", [{ observed: { phase: "Verifying", applied } }], "Assigned"],
    ["that is ready", [{ observed: ready }], "Succeeded"],
    ["that was ready, and no longer is", [{ observed: { phase: "Verifying", applied, readyAt: at } }], "Assigned"],
    [
      "that is ready with another rendering",
      [{ observed: { phase: "Ready", applied: { ...applied, renderDigest: "x" } } }],
      "Assigned",
    ],
    ["that is ready without an applied rendering", [{ observed: { phase: "Ready" } }], "Assigned"],
    ["that failed", [{ observed: { phase: "Failed", reason: "Invalid" } }], "Failed", "Invalid"],
    ["that does not answer", [{ observed: { phase: "Unreachable", reason: "Unreachable" } }], "Unreachable"],
    ["that answers again", [{ observed: { phase: "Reachable" } }], "Waiting", "answers again"],
    ["that is to be deleted and is not gone", [{ desired: { action: "delete" }, observed: ready }], "Assigned"],
    ["that is gone after its deletion", [{ desired: { action: "delete" }, observed: { phase: "Gone" } }], "Succeeded"],
    ["that is to be forgotten", [{ desired: { action: "orphan" } }], "Succeeded"],
    ["of which one Sync has not started", [{ observed: ready }, { template: "b" }], "Assigned"],
    [
      "of which one Sync is verified",
      [{ observed: ready }, { template: "b", observed: { phase: "Verifying" } }],
      "Assigned",
    ],
    ["whose Syncs are all ready", [{ observed: ready }, { template: "b", observed: ready }], "Succeeded"],
    ["with one failed Sync", [{ observed: ready }, { template: "b", observed: { phase: "Failed" } }], "Failed"],
    [
      "with one failed and one unreachable Sync",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: { phase: "Failed" } }],
      "Failed",
    ],
    [
      "with one unreachable Sync and one that is applied",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: { phase: "Applying" } }],
      "Assigned",
    ],
    [
      "with one unreachable Sync and one that may start",
      [{ observed: { phase: "Unreachable" } }, { template: "b" }],
      "Assigned",
    ],
    [
      "with one Sync that answers again and one that is applied",
      [{ observed: { phase: "Reachable" } }, { template: "b", observed: { phase: "Applying" } }],
      "Assigned",
    ],
    [
      "with one unreachable and one ready Sync",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: ready }],
      "Unreachable",
    ],
    [
      "that was ready before it became unreachable",
      [{ observed: { phase: "Unreachable", readyAt: at, applied } }],
      "Succeeded",
    ],
    [
      "that was ready with another rendering before it became unreachable",
      [{ observed: { phase: "Unreachable", readyAt: at, applied: { ...applied, renderDigest: "x" } } }],
      "Unreachable",
    ],
  ])("a cluster %s is %s", (_name, seen, state, reason) => {
    expect(verdict(seen)).toMatchObject(reason === undefined ? { state } : { state, reason });
  });

  test("the verdict shows the worst object", () => {
    const problems = [{ object: "Deployment shop/web", reason: "ImagePullBackOff", message: "no such image" }];
    const observed = { phase: "Verifying", reason: "NotReady", applied, problems } as const;
    expect(verdict([{ observed }]).reason).toBe("Deployment shop/web: ImagePullBackOff (no such image)");
  });

  test("a cluster whose assignment is gone waits for another one", () => {
    const clock = { progressSeconds, now: new Date(at) };
    const slot = { attempts: { "web.app": 2 } };
    expect(judge(slot, [], clock).state).toBe("Waiting");
    expect(judge(slot, [sync({ desired: { attempt: 3 } })], clock).state).toBe("Waiting");
    const both = { attempts: { "web.app": 2, "web.b": 2 } };
    expect(judge(both, [sync({ template: "b" })], clock).state).toBe("Assigned");
  });

  test("a cluster with assignments still to be written waits for them when the written ones are done", () => {
    expect(verdict([{ observed: ready }], 0, { unwritten: true }).state).toBe("Waiting");
    expect(verdict([{ observed: { phase: "Applying" } }], 0, { unwritten: true }).state).toBe("Assigned");
    expect(verdict([{ observed: { phase: "Failed" } }], 0, { unwritten: true }).state).toBe("Failed");
  });
});

describe("the deadline of a cluster", () => {
  const updatingTo: readonly Seen[] = [{ observed: { phase: "Verifying", reason: "NotReady", applied } }];
  const grown = (seconds: number): readonly Seen[] => [
    {
      observed: {
        phase: "Verifying",
        reason: "NotReady",
        applied,
        progress: { at: later(at, seconds), applied: 1, ready: 0 },
      },
    },
  ];
  const checkedAt = (seconds: number, next: number): readonly Seen[] => [
    {
      observed: {
        phase: "Verifying",
        reason: "NotReady",
        applied,
        at: later(at, seconds),
        nextAt: later(at, next),
      },
    },
  ];
  const freeze = { name: "inc", by: "ana", at, reason: "" };

  test.each<[string, readonly Seen[], number, Clock, string]>([
    ["does not end early", updatingTo, 599, {}, "Assigned"],
    ["does not end while a planned check is missing", checkedAt(60, 90), 3600, {}, "Assigned"],
    ["ends as soon as the planned check has happened", checkedAt(3590, 3620), 3600, {}, "Failed"],
    ["ends without a check if none was planned before", checkedAt(60, 1260), 600, {}, "Failed"],
    ["fails a cluster that is not done", updatingTo, 600, {}, "Failed"],
    ["does not run before a worker has started", [{}], 600_000, {}, "Assigned"],
    [
      "does not run because of an earlier attempt",
      [{ observed: { phase: "Applying", attempt: 1 } }],
      600_000,
      {},
      "Assigned",
    ],
    [
      "runs from the worker's start, not from the assignment",
      [{ observed: { phase: "Applying", startedAt: later(at, 500) } }],
      1099,
      {},
      "Assigned",
    ],
    [
      "ends counted from the worker's start",
      [{ observed: { phase: "Applying", startedAt: later(at, 500) } }],
      1100,
      {},
      "Failed",
    ],
    ["starts anew with each progress", grown(500), 1099, {}, "Assigned"],
    ["ends counted from the last progress", grown(500), 1100, {}, "Failed"],
    ["does not fail a cluster that is done", [{ observed: ready }], 6000, {}, "Succeeded"],
    ["does not run for an unreachable cluster", [{ observed: { phase: "Unreachable" } }], 6000, {}, "Unreachable"],
    ["runs while the worker tries again", [{ observed: { phase: "Retrying", reason: "Timeout" } }], 600, {}, "Failed"],
    ["does not run during a suspension", updatingTo, 6000, { pausedAt: later(at, 5) }, "Assigned"],
    ["starts anew after a suspension", updatingTo, 1100, { resumedAt: later(at, 501) }, "Assigned"],
    ["ends counted from the end of the suspension", updatingTo, 1101, { resumedAt: later(at, 501) }, "Failed"],
    ["does not start anew because of an earlier suspension", updatingTo, 600, { resumedAt: later(at, -5) }, "Failed"],
    ["does not run under a freeze", updatingTo, 6000, { freezing: { freeze } }, "Assigned"],
    ["starts anew when a freeze ends", updatingTo, 1100, { freezing: { releasedAt: later(at, 501) } }, "Assigned"],
    [
      "ends when one of several Syncs has used up its own",
      [{ observed: ready }, { ...updatingTo[0], template: "b" }],
      600,
      {},
      "Failed",
    ],
    [
      "does not end while the started Sync has time and the other has not started",
      [{ template: "b" }, ...updatingTo],
      599,
      {},
      "Assigned",
    ],
    ["ends for the Sync that has started", [{ template: "b" }, ...updatingTo], 600, {}, "Failed"],
  ])("the deadline %s", (_name, seen, seconds, clock, state) => {
    expect(verdict(seen, seconds, clock).state).toBe(state);
  });

  test("the deadline does not fail a cluster for a denied blob, and fails it for other reasons", () => {
    const denied = { observed: { phase: "Retrying", reason: "BlobDenied", message: "S3 denied a" } } as const;
    expect(verdict([denied], 6000)).toEqual({ state: "Assigned", reason: "BlobDenied: S3 denied a" });
    expect(verdict([denied, { ...updatingTo[0], template: "b" }], 6000).state).toBe("Failed");
    const goesOn = { observed: { phase: "Verifying", reason: "NotReady", deniedAt: later(at, 5400) } } as const;
    expect(verdict([goesOn], 5999).state).toBe("Assigned");
    expect(verdict([goesOn], 6000).state).toBe("Failed");
  });

  test("the deadline of several Syncs is the earliest one", () => {
    const later30 = { ...grown(30)[0], template: "b" };
    const parts = [...updatingTo, later30];
    expect(verdict(parts, 599)).toMatchObject({ state: "Assigned", deadline: later(at, 600) });
    for (const order of [parts, parts.toReversed()]) expect(verdict(order, 600).state).toBe("Failed");
  });

  test("a missed deadline says what was waited for", () => {
    expect(verdict(updatingTo, 600).reason).toBe("DeadlineExceeded: NotReady");
  });

  test("a Sync without an assignment or a start has no deadline", () => {
    expect(deadlineOf(undefined, { progressSeconds })).toBeUndefined();
    expect(deadlineOf(sync({}), { progressSeconds })).toBeUndefined();
    expect(deadlineOf(sync({ observed: { phase: "Applying" } }), { progressSeconds })).toBe(later(at, 600));
  });
});

test.each<[Phase, number, boolean]>([
  ["Applying", 2, false],
  ["Retrying", 2, false],
  ["Failed", 2, false],
  ["Verifying", 2, true],
  ["Ready", 2, true],
  ["Applying", 1, true],
])("a Sync in %s of attempt %i may be replaced during attempt 2: %s", (phase, attempt, replaceable) => {
  expect(isReplaceable(sync({ observed: { phase, attempt } }))).toBe(replaceable);
});

test("a Sync that never started may be replaced", () => {
  expect(isReplaceable(sync({}))).toBe(true);
});

test("an assignment counts even if it failed", () => {
  const desired = { renderDigest: digest, apply: applyOptions.parse({}) };
  expect(isNewestAssignment(sync({ observed: { phase: "Failed" } }), desired)).toBe(true);
  expect(isNewestAssignment(sync({ desired: { action: "delete" } }), desired)).toBe(false);
});

describe("a Sync needs no new assignment", () => {
  const desired = { renderDigest: digest, apply: applyOptions.parse({}) };
  test.each<[string, SyncRow | undefined, boolean]>([
    ["if it is ready with the rendering", sync({ observed: ready }), true],
    ["if it was never assigned", undefined, false],
    ["if it has another rendering", sync({ desired: { renderDigest: "x" }, observed: ready }), false],
    [
      "if it has other options",
      sync({ desired: { apply: applyOptions.parse({ prune: false }) }, observed: ready }),
      false,
    ],
    ["if it is not ready", sync({ observed: { phase: "Verifying", applied } }), false],
    ["if an earlier attempt was ready", sync({ observed: { ...ready, attempt: 1 } }), false],
    ["if it is to be deleted", sync({ desired: { action: "delete" }, observed: ready }), false],
  ])("a Sync needs no assignment %s: %s", (_name, row, unchanged) => {
    expect(isUnchanged(row, desired)).toBe(unchanged);
  });
});

test.each<[string, SyncRow, number | undefined, boolean]>([
  [
    "that failed on its stage's current rollout",
    sync({ desired: { rollout: 3 }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  ["that is ready on its stage's current rollout", sync({ desired: { rollout: 3 }, observed: ready }), 3, false],
  [
    "that failed on a rollout that its stage has not passed",
    sync({ desired: { rollout: 4 }, observed: { phase: "Failed" } }),
    3,
    false,
  ],
  [
    "that was not ready before a rollout that its stage has not passed, nor since",
    sync({ desired: { rollout: 4, preexisting: true }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  [
    "that was not ready before such a rollout, and is ready since",
    sync({ desired: { rollout: 4, preexisting: true }, observed: ready }),
    3,
    false,
  ],
  [
    "that was not ready before such a rollout, and was ready for a moment",
    sync({ desired: { rollout: 4, preexisting: true }, observed: { phase: "Failed", readyAt: at } }),
    3,
    false,
  ],
  [
    "that was not ready before such a rollout, and was last seen with the rollout before",
    sync({
      desired: { attempt: 2, rollout: 4, preexisting: true },
      observed: { attempt: 1, phase: "Failed", readyAt: at },
    }),
    3,
    true,
  ],
  ["that was never checked", sync({ desired: { rollout: 3 } }), 3, false],
  ["that failed in a stage that has passed nothing", sync({ observed: { phase: "Failed" } }), undefined, false],
  [
    "that failed on an older rollout than its stage's",
    sync({ desired: { rollout: 2 }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  ["that is gone", sync({ desired: { rollout: 3 }, observed: { phase: "Gone" } }), 3, false],
  ["that is unreachable", sync({ desired: { rollout: 3 }, observed: { phase: "Unreachable" } }), 3, false],
  ["that answers again", sync({ desired: { rollout: 3 }, observed: { phase: "Reachable" } }), 3, false],
  [
    "that is unreachable and had failed",
    { ...sync({ desired: { rollout: 3 }, observed: { phase: "Unreachable" } }), paused: { reason: "Failed", at } },
    3,
    true,
  ],
  ...(["Applying", "Verifying", "Retrying"] as const).map((phase): [string, SyncRow, number, boolean] => [
    `that was forgotten in the phase ${phase}, and was never ready`,
    sync({ desired: { action: "orphan", attempt: 2, rollout: 3 }, observed: { attempt: 1, phase } }),
    3,
    false,
  ]),
  [
    "that got another attempt in the middle of one",
    sync({ desired: { attempt: 2, rollout: 3 }, observed: { attempt: 1, phase: "Applying" } }),
    3,
    false,
  ],
  [
    "that was forgotten after it had ceased to be ready",
    sync({
      desired: { action: "orphan", attempt: 2, rollout: 3 },
      observed: { attempt: 1, phase: "Verifying", readyAt: at },
    }),
    3,
    true,
  ],
  [
    "that was forgotten after it had failed",
    sync({ desired: { action: "orphan", attempt: 2, rollout: 3 }, observed: { attempt: 1, phase: "Failed" } }),
    3,
    true,
  ],
  [
    "that is not ready, and not forgotten",
    sync({ desired: { rollout: 3 }, observed: { phase: "Verifying" } }),
    3,
    true,
  ],
  [
    "that a freeze holds in the middle of an apply",
    {
      ...sync({ desired: { rollout: 3 }, observed: { phase: "Applying" } }),
      paused: { reason: "frozen", at, freeze: "inc-1" },
    },
    3,
    false,
  ],
  [
    "whose worker began with a rollout just as it was rejected",
    {
      ...sync({ desired: { rollout: 3 }, observed: { phase: "Applying" } }),
      paused: { reason: "rollout 3 rejected by ana", at, rejected: true },
    },
    3,
    false,
  ],
  [
    "that a freeze holds, and that was not ready before the rollout",
    {
      ...sync({ desired: { rollout: 3, preexisting: true }, observed: { phase: "Applying" } }),
      paused: { reason: "frozen", at, freeze: "inc-1" },
    },
    3,
    true,
  ],
  [
    "that is unreachable, and was not ready before the rollout",
    sync({ desired: { rollout: 3, preexisting: true }, observed: { phase: "Unreachable" } }),
    3,
    true,
  ],
])(
  "a cluster %s, in a stage with the current rollout %s, counts as preexisting: %s",
  (_name, row, current, preexisting) => {
    expect(isPreexisting(row, current)).toBe(preexisting);
  },
);
