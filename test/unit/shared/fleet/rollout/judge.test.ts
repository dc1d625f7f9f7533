import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import {
  type Deadlines,
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

/** @param seconds - since the assignment, which its worker began at once. */
function verdict(seen: readonly Seen[], seconds = 0, { unwritten, ...clock }: Clock = {}) {
  const attempts = Object.fromEntries(seen.map((one) => [`web.${one.template ?? "app"}`, 2]));
  const now = new Date(later(at, seconds));
  return judge({ attempts, ...defined({ unwritten }) }, seen.map(sync), { progressSeconds, now, ...clock });
}

const ready = { phase: "Ready", applied } as const;

describe("a cluster that has a slot", () => {
  test.each<[string, readonly Seen[], string, string?]>([
    ["nobody has worked on", [{}], "Assigned", "waiting for the cluster's worker"],
    ["observed before it was assigned", [{ observed: { ...ready, attempt: 1 } }], "Assigned"],
    ["being applied", [{ observed: { phase: "Applying", reason: "Applying" } }], "Assigned", "Applying"],
    [
      "tried again",
      [{ observed: { phase: "Retrying", reason: "Timeout", message: "slow" } }],
      "Assigned",
      "Timeout: slow",
    ],
    ["applied and not ready", [{ observed: { phase: "Verifying", applied } }], "Assigned"],
    ["ready", [{ observed: ready }], "Succeeded"],
    ["that was ready, and is not any more", [{ observed: { phase: "Verifying", applied, readyAt: at } }], "Assigned"],
    [
      "ready with another rendering",
      [{ observed: { phase: "Ready", applied: { ...applied, renderDigest: "x" } } }],
      "Assigned",
    ],
    ["ready with nothing applied", [{ observed: { phase: "Ready" } }], "Assigned"],
    ["failed", [{ observed: { phase: "Failed", reason: "Invalid" } }], "Failed", "Invalid"],
    ["that does not answer", [{ observed: { phase: "Unreachable", reason: "Unreachable" } }], "Unreachable"],
    ["that answers again", [{ observed: { phase: "Reachable" } }], "Waiting", "answers again"],
    ["to be deleted, and not gone", [{ desired: { action: "delete" }, observed: ready }], "Assigned"],
    ["that is gone as it should", [{ desired: { action: "delete" }, observed: { phase: "Gone" } }], "Succeeded"],
    ["to be forgotten", [{ desired: { action: "orphan" } }], "Succeeded"],
    ["of which one part is begun", [{ observed: ready }, { template: "b" }], "Assigned"],
    [
      "of which one part is verified",
      [{ observed: ready }, { template: "b", observed: { phase: "Verifying" } }],
      "Assigned",
    ],
    ["whose parts are all ready", [{ observed: ready }, { template: "b", observed: ready }], "Succeeded"],
    ["with one failed part", [{ observed: ready }, { template: "b", observed: { phase: "Failed" } }], "Failed"],
    [
      "with one failed part and one away",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: { phase: "Failed" } }],
      "Failed",
    ],
    [
      "with one part away and one that is applied",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: { phase: "Applying" } }],
      "Assigned",
    ],
    [
      "with one part away and one that a worker may begin",
      [{ observed: { phase: "Unreachable" } }, { template: "b" }],
      "Assigned",
    ],
    [
      "with one part that answers again and one that is applied",
      [{ observed: { phase: "Reachable" } }, { template: "b", observed: { phase: "Applying" } }],
      "Assigned",
    ],
    [
      "with one part away and one ready",
      [{ observed: { phase: "Unreachable" } }, { template: "b", observed: ready }],
      "Unreachable",
    ],
    ["that was ready before it went away", [{ observed: { phase: "Unreachable", readyAt: at, applied } }], "Succeeded"],
    [
      "that was ready with another rendering before it went away",
      [{ observed: { phase: "Unreachable", readyAt: at, applied: { ...applied, renderDigest: "x" } } }],
      "Unreachable",
    ],
  ])("%s is %s", (_name, seen, state, reason) => {
    expect(verdict(seen)).toMatchObject(reason === undefined ? { state } : { state, reason });
  });

  test("shows its worst object", () => {
    const problems = [{ object: "Deployment shop/web", reason: "ImagePullBackOff", message: "no such image" }];
    const observed = { phase: "Verifying", reason: "NotReady", applied, problems } as const;
    expect(verdict([{ observed }]).reason).toBe("Deployment shop/web: ImagePullBackOff (no such image)");
  });

  test("whose assignment is gone waits for another one", () => {
    const clock = { progressSeconds, now: new Date(at) };
    const slot = { attempts: { "web.app": 2 } };
    expect(judge(slot, [], clock).state).toBe("Waiting");
    expect(judge(slot, [sync({ desired: { attempt: 3 } })], clock).state).toBe("Waiting");
    const both = { attempts: { "web.app": 2, "web.b": 2 } };
    expect(judge(both, [sync({ template: "b" })], clock).state).toBe("Assigned");
  });

  test("that is to have more than fitted waits for the rest when it has what did", () => {
    expect(verdict([{ observed: ready }], 0, { unwritten: true }).state).toBe("Waiting");
    expect(verdict([{ observed: { phase: "Applying" } }], 0, { unwritten: true }).state).toBe("Assigned");
    expect(verdict([{ observed: { phase: "Failed" } }], 0, { unwritten: true }).state).toBe("Failed");
  });
});

describe("the deadline", () => {
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
  const lookedAt = (seconds: number, next: number): readonly Seen[] => [
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
    ["is not over before it", updatingTo, 599, {}, "Assigned"],
    ["is not over for whom nobody looked at who was to", lookedAt(60, 90), 3600, {}, "Assigned"],
    ["is over as soon as that one has been looked at", lookedAt(3590, 3620), 3600, {}, "Failed"],
    ["is over for whom nobody was to look at before", lookedAt(60, 1260), 600, {}, "Failed"],
    ["fails what is not done", updatingTo, 600, {}, "Failed"],
    ["does not run for what nobody has begun", [{}], 600_000, {}, "Assigned"],
    [
      "nor for what was begun of an attempt before",
      [{ observed: { phase: "Applying", attempt: 1 } }],
      600_000,
      {},
      "Assigned",
    ],
    [
      "runs from when the worker began, whenever it was assigned",
      [{ observed: { phase: "Applying", startedAt: later(at, 500) } }],
      1099,
      {},
      "Assigned",
    ],
    ["and ends from there", [{ observed: { phase: "Applying", startedAt: later(at, 500) } }], 1100, {}, "Failed"],
    ["begins anew with everything that goes forward", grown(500), 1099, {}, "Assigned"],
    ["and ends from the last of it", grown(500), 1100, {}, "Failed"],
    ["does not undo what is done", [{ observed: ready }], 6000, {}, "Succeeded"],
    ["does not run for who does not answer", [{ observed: { phase: "Unreachable" } }], 6000, {}, "Unreachable"],
    [
      "runs while it is tried again and again",
      [{ observed: { phase: "Retrying", reason: "Timeout" } }],
      600,
      {},
      "Failed",
    ],
    ["does not run while suspended", updatingTo, 6000, { pausedAt: later(at, 5) }, "Assigned"],
    ["starts anew after a suspension", updatingTo, 1100, { resumedAt: later(at, 501) }, "Assigned"],
    ["and ends then", updatingTo, 1101, { resumedAt: later(at, 501) }, "Failed"],
    ["does not start anew by a suspension before it", updatingTo, 600, { resumedAt: later(at, -5) }, "Failed"],
    ["does not run under a freeze", updatingTo, 6000, { freezing: { freeze } }, "Assigned"],
    ["starts anew when a freeze lets go", updatingTo, 1100, { freezing: { releasedAt: later(at, 501) } }, "Assigned"],
    [
      "is over when one of several parts has used its own up",
      [{ observed: ready }, { ...updatingTo[0], template: "b" }],
      600,
      {},
      "Failed",
    ],
    [
      "is not over while the one that is begun has time, and the other has none",
      [{ template: "b" }, ...updatingTo],
      599,
      {},
      "Assigned",
    ],
    ["is over for the one that is begun", [{ template: "b" }, ...updatingTo], 600, {}, "Failed"],
  ])("%s", (_name, seen, seconds, clock, state) => {
    expect(verdict(seen, seconds, clock).state).toBe(state);
  });

  test("fails no cluster for what the store denies, and the others all the same", () => {
    const denied = { observed: { phase: "Retrying", reason: "BlobDenied", message: "S3 denied a" } } as const;
    expect(verdict([denied], 6000)).toEqual({ state: "Assigned", reason: "BlobDenied: S3 denied a" });
    expect(verdict([denied, { ...updatingTo[0], template: "b" }], 6000).state).toBe("Failed");
    const goesOn = { observed: { phase: "Verifying", reason: "NotReady", deniedAt: later(at, 5400) } } as const;
    expect(verdict([goesOn], 5999).state).toBe("Assigned");
    expect(verdict([goesOn], 6000).state).toBe("Failed");
  });

  test("of several parts is that of the first whose time is up", () => {
    const later30 = { ...grown(30)[0], template: "b" };
    const parts = [...updatingTo, later30];
    expect(verdict(parts, 599)).toMatchObject({ state: "Assigned", deadline: later(at, 600) });
    for (const order of [parts, parts.toReversed()]) expect(verdict(order, 600).state).toBe("Failed");
  });

  test("says what was waited for", () => {
    expect(verdict(updatingTo, 600).reason).toBe("DeadlineExceeded: NotReady");
  });

  test("of what was never assigned, or never begun, is none", () => {
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
])("observed %s of attempt %i, something else may take the place of attempt 2: %s", (phase, attempt, replaceable) => {
  expect(isReplaceable(sync({ observed: { phase, attempt } }))).toBe(replaceable);
});

test("what was never begun may be replaced", () => {
  expect(isReplaceable(sync({}))).toBe(true);
});

test("what is assigned is so whatever became of it", () => {
  const desired = { renderDigest: digest, apply: applyOptions.parse({}) };
  expect(isNewestAssignment(sync({ observed: { phase: "Failed" } }), desired)).toBe(true);
  expect(isNewestAssignment(sync({ desired: { action: "delete" } }), desired)).toBe(false);
});

describe("nothing needs to be sent", () => {
  const desired = { renderDigest: digest, apply: applyOptions.parse({}) };
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
    expect(isUnchanged(row, desired)).toBe(unchanged);
  });
});

test.each<[string, SyncRow, number | undefined, boolean]>([
  ["not ready on what its stage is on", sync({ desired: { rollout: 3 }, observed: { phase: "Failed" } }), 3, true],
  ["ready after it", sync({ desired: { rollout: 3 }, observed: ready }), 3, false],
  [
    "broken by what its stage has not passed",
    sync({ desired: { rollout: 4 }, observed: { phase: "Failed" } }),
    3,
    false,
  ],
  [
    "not ready before what its stage has not passed, nor since",
    sync({ desired: { rollout: 4, preexisting: true }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  [
    "not ready before what its stage has not passed, and ready since",
    sync({ desired: { rollout: 4, preexisting: true }, observed: ready }),
    3,
    false,
  ],
  [
    "not ready before what its stage has not passed, and ready for a moment",
    sync({ desired: { rollout: 4, preexisting: true }, observed: { phase: "Failed", readyAt: at } }),
    3,
    false,
  ],
  [
    "not ready before what its stage has not passed, and seen with what was before",
    sync({
      desired: { attempt: 2, rollout: 4, preexisting: true },
      observed: { attempt: 1, phase: "Failed", readyAt: at },
    }),
    3,
    true,
  ],
  ["never looked at", sync({ desired: { rollout: 3 } }), 3, false],
  ["not ready, in a stage that has passed nothing", sync({ observed: { phase: "Failed" } }), undefined, false],
  [
    "older than what its stage is on, and not ready",
    sync({ desired: { rollout: 2 }, observed: { phase: "Failed" } }),
    3,
    true,
  ],
  ["gone", sync({ desired: { rollout: 3 }, observed: { phase: "Gone" } }), 3, false],
  ["away", sync({ desired: { rollout: 3 }, observed: { phase: "Unreachable" } }), 3, false],
  ["that answers again", sync({ desired: { rollout: 3 }, observed: { phase: "Reachable" } }), 3, false],
  [
    "away that had failed",
    { ...sync({ desired: { rollout: 3 }, observed: { phase: "Unreachable" } }), paused: { reason: "Failed", at } },
    3,
    true,
  ],
  ...(["Applying", "Verifying", "Retrying"] as const).map((phase): [string, SyncRow, number, boolean] => [
    `forgotten while it was ${phase}, and was never ready`,
    sync({ desired: { action: "orphan", attempt: 2, rollout: 3 }, observed: { attempt: 1, phase } }),
    3,
    false,
  ]),
  [
    "given another attempt in the middle of one",
    sync({ desired: { attempt: 2, rollout: 3 }, observed: { attempt: 1, phase: "Applying" } }),
    3,
    false,
  ],
  [
    "forgotten while it was ready no more",
    sync({
      desired: { action: "orphan", attempt: 2, rollout: 3 },
      observed: { attempt: 1, phase: "Verifying", readyAt: at },
    }),
    3,
    true,
  ],
  [
    "forgotten after it had failed",
    sync({ desired: { action: "orphan", attempt: 2, rollout: 3 }, observed: { attempt: 1, phase: "Failed" } }),
    3,
    true,
  ],
  ["not ready, and not forgotten", sync({ desired: { rollout: 3 }, observed: { phase: "Verifying" } }), 3, true],
  [
    "that a freeze holds in the middle",
    {
      ...sync({ desired: { rollout: 3 }, observed: { phase: "Applying" } }),
      paused: { reason: "frozen", at, freeze: "inc-1" },
    },
    3,
    false,
  ],
  [
    "that a freeze holds, and that was not ready before either",
    {
      ...sync({ desired: { rollout: 3, preexisting: true }, observed: { phase: "Applying" } }),
      paused: { reason: "frozen", at, freeze: "inc-1" },
    },
    3,
    true,
  ],
  [
    "away that was not ready before either",
    sync({ desired: { rollout: 3, preexisting: true }, observed: { phase: "Unreachable" } }),
    3,
    true,
  ],
])("a cluster %s: its stage on %s, was it not ready before: %s", (_name, row, current, preexisting) => {
  expect(isPreexisting(row, current)).toBe(preexisting);
});
