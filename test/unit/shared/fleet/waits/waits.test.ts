import { describe, expect, test } from "vitest";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Freeze } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { UserSyncRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, SlotRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { desiredKey, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";
import { waitsOf } from "#shared/fleet/waits/waits.ts";
import { factsOf, groupRow, stage, stageRun } from "#test/unit/cli/format/overview-fixture.ts";
import { shop, slotRow, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const by = "arn:aws:sts::111122223333:assumed-role/sre/ana";
const passed = { phase: "Passed", endedAt: "2026-11-20T07:51:00.000Z" } as const;

/** Consecutive stages, each with the stage run that updates it. */
function going(...stageRuns: readonly StageRunRow[]): {
  readonly stageRuns: readonly StageRunRow[];
  readonly stages: readonly StageRecord[];
} {
  return {
    stageRuns,
    stages: stageRuns.map((one) =>
      one.phase === "Passed"
        ? stage(one.stage, { members: one.size, current: one.rollout, passed: refOf(one) })
        : stage(one.stage, {
            members: one.size,
            current: one.rollout - 1,
            updatingTo: refOf(one),
            changing: one.counts.Assigned,
          }),
    ),
  };
}

function freeze(name: string, clusters?: string): Freeze {
  const selection = clusters === undefined ? {} : { clusters: { text: clusters, selector: { matchLabels: {} } } };
  return { name, by, at: "2026-11-20T08:00:00.000Z", reason: "INC-1", until: "2026-11-20T09:00:00.000Z", ...selection };
}

function freezeStateWith(...freezes: readonly Freeze[]): Pick<WaitFacts, "freezeState"> {
  return { freezeState: { ok: true, freezeState: { freezes, lifted: [] } } };
}

function unbegun(cluster: string): SyncRow {
  const { observed: _observed, ...row } = syncRow(cluster, "shop.web");
  return row;
}

function lease(cluster: string, change: Partial<LeaseRow> = {}): LeaseRow {
  return {
    ...keys.lease(cluster),
    type: "Lease",
    schema: 1,
    version: 1,
    fence: 3,
    desired: 1,
    owner: "worker-1",
    leaseUntil: "2026-11-20T08:07:30.000Z",
    begun: { sync: "search/geo", desired: "sha256:1", alone: false },
    ...change,
  };
}

function catchUp(cluster: string): CatchUpRow {
  const row = {
    type: "CatchUp",
    schema: 1,
    version: 1,
    cluster,
    why: "joined",
    since: "2026-11-20T08:01:00.000Z",
  } as const;
  return { ...keys.catchUp(shop, "failed", cluster), ...row, reason: "ApplyFailed: 1 of 4 objects failed" };
}

function slotsOf(one: StageRunRow, ...clusters: readonly string[]): readonly SlotRow[] {
  return clusters.map((cluster, order) => slotRow(one, { order, cluster }));
}

function syncsOf(...rows: readonly SyncRow[]): ReadonlyMap<string, readonly SyncRow[]> {
  return Map.groupBy(rows, ({ cluster }) => cluster);
}

const canary = stageRun(119, "canary", { counts: { Assigned: 2, Waiting: 3 } });
const quiet = stageRun(119, "canary", { counts: { Assigned: 1 } });

describe("a group waits for nothing", () => {
  test.each<[string, Parameters<typeof factsOf>[0]]>([
    ["when all stages have the same rollout", going(stageRun(118, "canary", passed), stageRun(118, "rest", passed))],
    ["when every cluster has a slot", going(quiet)],
    ["before the first rollout", { stageRuns: [], stages: [] }],
    [
      "when a freeze is over",
      { ...going(quiet), facts: freezeStateWith({ ...freeze("old"), until: "2026-11-20T08:06:00.000Z" }) },
    ],
    [
      "when a worker got its assignment a moment ago",
      {
        ...going(quiet),
        facts: {
          slots: slotsOf(quiet, "c1").map((slot) => ({ ...slot, since: "2026-11-20T08:06:30.000Z" })),
          syncs: syncsOf(unbegun("c1")),
        },
      },
    ],
    [
      "when an assignment starts later because of the jitter",
      {
        ...going(quiet),
        facts: {
          slots: slotsOf(quiet, "c1"),
          syncs: syncsOf({
            ...unbegun("c1"),
            desired: { ...unbegun("c1").desired, startAt: "2026-11-20T08:07:00.000Z" },
          }),
        },
      },
    ],
  ])("a group waits for nothing %s", (_what, given) => {
    expect(waitsOf(factsOf(given))).toEqual([]);
  });
});

describe("the waits of a stage", () => {
  test.each<[string, Parameters<typeof factsOf>[0], readonly Partial<Wait>[]]>([
    [
      "waits for the stage before it",
      going(quiet, stageRun(118, "rest", passed)),
      [
        {
          reason: "stage",
          stage: "rest",
          rollout: 119,
          blocker: "canary",
          message: "waits for stage canary: rollout 119 is in progress there, 0 of 1 done",
          clear: [],
        },
      ],
    ],
    [
      "waits for the nearest earlier stage with a rollout",
      going(quiet, stageRun(118, "early", { counts: { Assigned: 1 } }), stageRun(117, "rest", passed)),
      [{ reason: "stage", stage: "rest", rollout: 118, blocker: "early" }],
    ],
    [
      "makes the next rollout wait until its own has passed",
      {
        ...going(stageRun(119, "canary", passed), stageRun(118, "rest", { counts: { Assigned: 1, Succeeded: 1 } })),
      },
      [
        {
          reason: "stage",
          stage: "rest",
          rollout: 119,
          blocker: "rest",
          message: "rollout 119 waits until rollout 118 has passed stage rest",
        },
      ],
    ],
    [
      "makes the desired revision wait",
      { ...going(quiet), facts: { desired: "main@sha1:abc" } },
      [
        {
          reason: "stage",
          stage: "canary",
          blocker: "canary",
          message: "revision main@sha1:abc waits until rollout 119 has passed stage canary",
        },
      ],
    ],
    [
      "waits for renderings",
      going(
        stageRun(119, "canary", {
          counts: { Assigned: 1, Rendering: 2 },
          holds: [{ cause: "rendering", clusters: [3, 4] }],
        }),
      ),
      [
        {
          reason: "rendering",
          stage: "canary",
          clusters: { count: 2, names: [] },
          message: "2 clusters wait for renderings",
          clear: [],
        },
      ],
    ],
    [
      "waits until an earlier attempt has ended",
      going(
        stageRun(119, "canary", { counts: { Assigned: 1, Waiting: 1 }, holds: [{ cause: "worker", clusters: [1] }] }),
      ),
      [
        {
          reason: "worker",
          stage: "canary",
          message: "1 cluster waits until an earlier attempt has ended",
          clear: [],
        },
      ],
    ],
  ])("a stage %s", (_what, given, expected) => {
    expect(waitsOf(factsOf(given))).toMatchObject(expected);
    expect(waitsOf(factsOf(given))).toHaveLength(expected.length);
  });

  test("a stage waits neither for later stages nor for a rollout that it has", () => {
    const facts = factsOf(going(stageRun(119, "canary", passed), stageRun(119, "rest", { counts: { Assigned: 1 } })));
    expect(waitsOf(facts)).toEqual([]);
  });

  test("a group with supersede: finish says which rollout is not finished", () => {
    const spec = { ...groupRow().spec, rollout: { ...groupRow().spec.rollout, supersede: "finish" as const } };
    const given = going(
      stageRun(119, "canary", passed),
      stageRun(119, "rest", { counts: { Assigned: 1, Succeeded: 3 } }),
    );
    const finish = factsOf({ ...given, row: groupRow({ spec }), facts: { desired: "main@sha1:abc" } });
    expect(waitsOf(finish)).toMatchObject([
      {
        reason: "stage",
        stage: "canary",
        blocker: "rest",
        message: "revision main@sha1:abc waits until rollout 119 has ended: 3 of 4 done in stage rest",
      },
    ]);
    // With the default the first stage takes it at once.
    expect(waitsOf(factsOf({ ...given, facts: { desired: "main@sha1:abc" } }))).toEqual([]);
  });
});

describe("a stage run that stands still names the ways to continue", () => {
  const promote = { verb: "promote", stage: "canary", rollout: 119 } as const;
  const at = { transitions: [{ at: "2026-11-20T08:02:00.000Z", phase: "Halted", reason: "", message: "" }] } as const;

  test.each<[string, StageRunRow, Partial<Wait>]>([
    [
      "a spent budget of failures",
      stageRun(119, "canary", {
        ...at,
        phase: "Halted",
        message: "2 of 6 clusters failed in stage canary (allowed: 0): c7: ImagePullBackOff",
        counts: { Failed: 2, Waiting: 4 },
        failures: [
          { cluster: "c5", reason: "x" },
          { cluster: "c7", reason: "ImagePullBackOff" },
        ],
      }),
      {
        reason: "budget",
        stage: "canary",
        rollout: 119,
        clusters: { count: 2, names: ["c5", "c7"] },
        message: "2 of 6 clusters failed in stage canary (allowed: 0): c7: ImagePullBackOff",
        since: "2026-11-20T08:02:00.000Z",
        clear: [
          { verb: "rollback", to: 118 },
          { verb: "retry" },
          { verb: "skip", cluster: "c5", of: 2 },
          { verb: "skip", cluster: "c7", of: 2 },
          { verb: "refresh" },
          { verb: "pace", field: "maxFailures" },
        ],
      },
    ],
    [
      "no evidence",
      stageRun(119, "canary", {
        ...at,
        phase: "NothingVerified",
        message: "nothing verified",
        counts: { Unreachable: 1, Failed: 1, Unchanged: 1 },
        preexistingFailures: 1,
        away: ["c1"],
        failures: [{ cluster: "c2", reason: "ApplyFailed" }],
      }),
      {
        reason: "evidence",
        clusters: { count: 2, names: ["c1", "c2"] },
        message: "nothing verified: c1, c2",
        clear: [{ verb: "rollback", to: 118 }, { verb: "retry" }, { verb: "refresh" }, promote],
      },
    ],
    [
      "no cluster that answers, where a reconcile cannot help,",
      stageRun(119, "canary", {
        ...at,
        phase: "NothingVerified",
        message: "nothing verified",
        counts: { Unreachable: 1 },
        away: ["c1"],
      }),
      { reason: "evidence", clusters: { count: 1, names: ["c1"] }, clear: [{ verb: "refresh" }, promote] },
    ],
    [
      "too many unreachable clusters",
      stageRun(119, "canary", {
        ...at,
        phase: "TooManyUnreachable",
        message: "4 of 5 clusters unreachable in stage canary (allowed: 1)",
        counts: { Unreachable: 4, Succeeded: 1 },
        away: ["c1", "c2", "c3", "c4"],
      }),
      {
        reason: "unreachable",
        message: "4 of 5 clusters unreachable in stage canary (allowed: 1): c1, c2, c3 and 1 more",
        clear: [{ verb: "pace", field: "maxUnreachable" }, { verb: "refresh" }, promote],
      },
    ],
  ])("a stage run with %s names the ways to continue", (_what, stalled, expected) => {
    expect(waitsOf(factsOf(going(stalled)))).toMatchObject([expected]);
  });

  test("a failed deletion can be continued by a reconcile or by orphaning", () => {
    const deletion = { by, at: "2026-11-20T08:00:00.000Z", number: 3, cascade: "delete" } as const;
    const halted = stageRun(119, "canary", { ...at, phase: "Halted", reason: "DeletionFailed", counts: { Failed: 1 } });
    const facts = factsOf({ ...going(halted), row: groupRow({ operations: { deletion } }) });
    expect(waitsOf(facts)).toMatchObject([{ reason: "budget", clear: [{ verb: "reconcile" }, { verb: "orphan" }] }]);
  });

  test("a deletion that waits for unreachable clusters names the ways to continue without them", () => {
    const deletion = { by, at: "2026-11-20T08:00:00.000Z", number: 3, cascade: "delete" } as const;
    const message = "2 of 5 clusters unreachable in stage canary (allowed: 0)";
    const counts = { Unreachable: 2, Succeeded: 3 };
    const away = stageRun(119, "canary", { ...at, phase: "TooManyUnreachable", message, counts, away: ["c1", "c2"] });
    expect(waitsOf(factsOf({ ...going(away), row: groupRow({ operations: { deletion } }) }))).toMatchObject([
      {
        reason: "unreachable",
        clusters: { count: 2, names: ["c1", "c2"] },
        message: "2 of 5 clusters unreachable in stage canary (allowed: 0): c1, c2",
        clear: [
          { verb: "unregister", cluster: "c1", of: 2 },
          { verb: "unregister", cluster: "c2", of: 2 },
          { verb: "orphan" },
        ],
      },
    ]);
  });

  test("a user's Sync has no budgets that could be changed", () => {
    const halted = stageRun(119, "all", { ...at, phase: "Halted", counts: { Failed: 1 } });
    const { spec: _spec, ...common } = groupRow();
    const spec = { cluster: "c1", source: "app", path: ".", apply: syncRow("c1", "own").desired.apply };
    const row: UserSyncRow = { ...common, ...keys.object("payments", "Sync", "own"), type: "Sync", name: "own", spec };
    const seen = { ...row, status: { ...row.status, observedGeneration: row.generation } };
    expect(waitsOf({ ...factsOf(going(halted)), row: seen })).toMatchObject([
      { reason: "budget", clear: [{ verb: "rollback", to: 118 }, { verb: "retry" }, { verb: "refresh" }] },
    ]);
  });
});

describe("waits for slots", () => {
  test("clusters that wait for slots are counted, and the oldest cluster with a slot is named", () => {
    const facts = factsOf({
      ...going(canary),
      rolloutState: { deadline: "2026-11-20T08:16:00.000Z" },
      facts: { slots: slotsOf(canary, "c1", "c2"), syncs: syncsOf(syncRow("c1", "shop.web", { phase: "Verifying" })) },
    });
    expect(waitsOf(facts)).toEqual([
      {
        reason: "slots",
        stage: "canary",
        rollout: 119,
        blocker: "c1",
        since: "2026-11-20T07:50:00.000Z",
        until: "2026-11-20T08:16:00.000Z",
        clusters: { count: 3, names: [] },
        message: "3 clusters wait: 2 of 2 slots are in use; oldest: c1, Verifying",
        clear: [{ verb: "pace", field: "maxConcurrent" }],
      },
    ]);
  });

  test("later stages wait for slots while the last one is reserved for the first stage", () => {
    const first = stageRun(119, "canary", { ...passed, counts: { Succeeded: 1 } });
    const second = stageRun(119, "rest", { counts: { Assigned: 1, Waiting: 2 } });
    expect(waitsOf(factsOf(going(first, second)))).toMatchObject([
      {
        reason: "slots",
        stage: "rest",
        message: "2 clusters wait: 1 of 2 slots are in use (one is reserved for the first stage)",
      },
    ]);
  });

  test("clusters of a stage with its own bound wait for the slots of that stage", () => {
    const { rollout } = groupRow().spec;
    const stages = rollout.stages.map((one) => (one.name === "canary" ? { ...one, maxConcurrent: 1 } : one));
    const row = groupRow({ spec: { ...groupRow().spec, rollout: { ...rollout, maxConcurrent: 10, stages } } });
    const own = stageRun(119, "canary", { counts: { Assigned: 1, Waiting: 3 } });
    expect(waitsOf(factsOf({ ...going(own), row }))).toMatchObject([
      { reason: "slots", stage: "canary", message: "3 clusters wait: 1 of 1 slots of canary are in use" },
    ]);
  });

  test("catch-ups of a stage with its own bound wait for the slots of that stage, too", () => {
    const { rollout } = groupRow().spec;
    const stages = rollout.stages.map((one) => (one.name === "canary" ? { ...one, maxConcurrent: 2 } : one));
    const row = groupRow({ spec: { ...groupRow().spec, rollout: { ...rollout, maxConcurrent: 10, stages } } });
    const full = [
      stage("canary", { members: 9, current: 118, changing: 1, catchingUp: 1 }),
      stage("rest", { current: 118 }),
    ];
    const holds = [
      { cause: "bound", name: "canary", clusters: 3 },
      { cause: "bound", name: "rest", clusters: 1 },
    ] as const;
    const catchUpsHeld = { holds };
    const rolloutState = { catchUps: { waiting: 4, changing: 1, failed: 0 }, catchUpsHeld };
    expect(waitsOf(factsOf({ stageRuns: [], stages: full, rolloutState, row }))).toMatchObject([
      {
        reason: "slots",
        stage: "canary",
        clusters: { count: 3 },
        message: "3 clusters wait to catch up: 2 of 2 slots of canary are in use",
        clear: [{ verb: "pace", field: "maxConcurrent" }],
      },
    ]);
  });

  test("catch-ups wait for slots that stage runs hold", () => {
    const full = stageRun(119, "canary", { counts: { Assigned: 2 } });
    const facts = factsOf({ ...going(full), rolloutState: { catchUps: { waiting: 4, changing: 0, failed: 0 } } });
    const [wait, ...others] = waitsOf(facts);
    expect(wait).toMatchObject({ reason: "slots", message: "4 clusters wait to catch up: 2 of 2 slots are in use" });
    expect(wait).not.toHaveProperty("stage");
    expect(others).toEqual([]);
  });
});

describe("workers that have not started", () => {
  const slots = slotsOf(quiet, "c1", "c2", "c3");

  test("clusters whose workers have not started are listed, with the work that keeps the worker busy", () => {
    const facts = factsOf({
      ...going(quiet),
      facts: {
        slots,
        syncs: syncsOf(unbegun("c1"), unbegun("c2"), syncRow("c3", "shop.web", { phase: "Applying" })),
        leases: new Map([["c2", lease("c2")]]),
      },
    });
    expect(waitsOf(facts)).toEqual([
      {
        reason: "worker",
        clusters: { count: 2, names: ["c1", "c2"] },
        blocker: "search/geo",
        message: "2 assigned and not begun: the worker of c2 is busy with search/geo",
        since: "2026-11-20T07:50:00.000Z",
        clear: [],
      },
    ]);
  });

  test('a limited number of clusters is checked, and more are counted as "or more"', () => {
    const clusters = Array.from({ length: 30 }, (_, index) => `c${index}`);
    const given = slotsOf(quiet, ...clusters);
    const syncs = syncsOf(...clusters.slice(0, 25).map(unbegun));
    const message = (slots: readonly SlotRow[]) =>
      waitsOf(factsOf({ ...going(quiet), facts: { slots, syncs } })).map((wait) => wait.message);
    expect(message(given)).toEqual(["25 or more assigned and not begun: c0, c1, c2 and 22 more"]);
    expect(message(given.slice(0, 25))).toEqual(["25 assigned and not begun: c0, c1, c2 and 22 more"]);
  });

  test.each<[string, Partial<LeaseRow>]>([
    ["has released its lease", { leaseUntil: "2026-11-20T08:06:00.000Z" }],
    ["has started nothing yet", { begun: undefined } as unknown as Partial<LeaseRow>],
  ])("a cluster whose worker %s is named without a blocker", (_what, change) => {
    const leases = new Map([["c1", lease("c1", change)]]);
    const facts = factsOf({
      ...going(quiet),
      facts: { slots: slotsOf(quiet, "c1"), syncs: syncsOf(unbegun("c1")), leases },
    });
    const [wait] = waitsOf(facts);
    expect(wait).toMatchObject({ reason: "worker", message: "1 assigned and not begun: c1" });
    expect(wait).not.toHaveProperty("blocker");
  });

  test("a worker that has just started the assignment is not waited for", () => {
    const row = unbegun("c1");
    const begun = { sync: `${row.namespace}/${row.name}`, desired: desiredKey(row), alone: true };
    const waits = (change: Partial<LeaseRow>) => {
      const leases = new Map([["c1", lease("c1", change)]]);
      const facts = { slots: slotsOf(quiet, "c1"), syncs: syncsOf(row), leases };
      return waitsOf(factsOf({ ...going(quiet), facts }));
    };
    expect(waits({ begun })).toEqual([]);
    expect(waits({ begun: { ...begun, desired: "sha256:before" } })).toMatchObject([{ reason: "worker" }]);
    expect(waits({ begun, leaseUntil: "2026-11-20T08:06:00.000Z" })).toMatchObject([{ reason: "worker" }]);
  });

  test("a paused or frozen cluster does not count as a worker that has not started", () => {
    const held = { ...freeze("us"), since: "2026-11-20T08:00:00.000Z", attempt: 2, at: "2026-11-20T08:01:00.000Z" };
    const paused = slotRow(quiet, { order: 0, cluster: "c1" }, { releasing: { fence: 3 } });
    const [frozen] = slotsOf(quiet, "c2");
    const facts = factsOf({
      ...going(quiet),
      facts: {
        slots: [paused, ...(frozen === undefined ? [] : [frozen])],
        syncs: syncsOf(unbegun("c1"), { ...unbegun("c2"), held }),
      },
    });
    expect(waitsOf(facts)).toEqual([]);
  });
});

describe("waits for people", () => {
  test("a suspension comes first, with its author, and hides the wait for slots", () => {
    const suspended = { by, at: "2026-11-20T08:04:00.000Z", reason: "INC-4711", number: 2 };
    const waits = waitsOf(factsOf({ ...going(canary), row: groupRow({ operations: { suspended } }) }));
    expect(waits).toEqual([
      {
        reason: "suspended",
        blocker: by,
        message: `suspended by ${by}: INC-4711`,
        since: "2026-11-20T08:04:00.000Z",
        clear: [{ verb: "resume" }],
      },
    ]);
  });

  test("a suspension is listed with its end", () => {
    const until = "2026-11-20T10:00:00.000Z";
    const suspended = { by, at: "2026-11-20T08:04:00.000Z", number: 2, until };
    const [wait] = waitsOf(factsOf({ ...going(canary), row: groupRow({ operations: { suspended } }) }));
    expect(wait).toMatchObject({ reason: "suspended", until });
  });

  test("a freeze of all clusters is listed with its end", () => {
    expect(waitsOf(factsOf({ ...going(canary), facts: freezeStateWith(freeze("all")) }))).toEqual([
      {
        reason: "frozen",
        blocker: "all",
        message: `all freezes every cluster, by ${by}: INC-1`,
        since: "2026-11-20T08:00:00.000Z",
        until: "2026-11-20T09:00:00.000Z",
        clear: [{ verb: "thaw", freeze: "all" }],
      },
    ]);
  });

  test("a freeze of some clusters is listed where it holds clusters, and another one is not", () => {
    const held = stageRun(119, "canary", {
      counts: { Assigned: 1, Waiting: 2 },
      holds: [{ cause: "freeze", name: "us", clusters: [1, 2] }],
    });
    const facts = freezeStateWith(freeze("us", "region=us"), freeze("eu", "region=eu"));
    expect(waitsOf(factsOf({ ...going(held), facts }))).toMatchObject([
      {
        reason: "frozen",
        stage: "canary",
        clusters: { count: 2, names: [] },
        message: `2 clusters wait: us freezes clusters region=us, by ${by}: INC-1`,
      },
    ]);
    expect(waitsOf(factsOf({ ...going(quiet), facts: freezeStateWith(freeze("us", "region=us")) }))).toEqual([]);
  });

  test("a freeze of some clusters is listed where clusters keep their slots under it", () => {
    const held = { ...freeze("us"), since: "2026-11-20T08:00:00.000Z", attempt: 2, at: "2026-11-20T08:01:00.000Z" };
    const facts = factsOf({
      ...going(quiet),
      facts: {
        ...freezeStateWith(freeze("us", "region=us"), freeze("eu", "region=eu")),
        slots: slotsOf(quiet, "c1", "c2"),
        syncs: syncsOf(syncRow("c1", "shop.web"), { ...unbegun("c2"), held }),
      },
    });
    expect(waitsOf(facts)).toMatchObject([
      { reason: "frozen", clusters: { count: 1, names: ["c2"] }, clear: [{ verb: "thaw", freeze: "us" }] },
    ]);
  });

  test("clusters that wait to catch up are listed by the reason of their wait", () => {
    const catchUps = { waiting: 7, changing: 0, failed: 0 };
    const holds = [
      { cause: "freeze", name: "us", clusters: 3 },
      { cause: "freeze", name: "old", clusters: 1 },
      { cause: "rendering", clusters: 2 },
      { cause: "worker", clusters: 1 },
    ] as const;
    const catchUpsHeld = { holds };
    const passing = going(stageRun(118, "canary", passed));
    const facts = freezeStateWith(freeze("us", "region=us"), freeze("eu", "region=eu"));
    const given = { ...passing, rolloutState: { catchUps, catchUpsHeld }, facts };
    expect(waitsOf(factsOf(given)).filter(({ reason }) => reason !== "slots")).toMatchObject([
      {
        reason: "frozen",
        blocker: "us",
        message: `3 clusters wait to catch up: us freezes clusters region=us, by ${by}: INC-1`,
      },
      { reason: "worker", message: "1 cluster waits to catch up, until an earlier attempt has ended", clear: [] },
      { reason: "rendering", message: "2 clusters wait to catch up, for renderings", clear: [] },
    ]);
    expect(waitsOf(factsOf({ ...passing, rolloutState: { catchUps: { ...catchUps, waiting: 0 } }, facts }))).toEqual(
      [],
    );
  });

  test("freezes that cannot be read are listed with the reason", () => {
    const facts = factsOf({
      ...going(quiet),
      facts: { freezeState: { ok: false, message: "the freezes cannot be read" } },
    });
    expect(waitsOf(facts)).toEqual([{ reason: "frozen", message: "the freezes cannot be read", clear: [] }]);
  });
});

describe("a reconcile that is not answered", () => {
  const counts = { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
  const checking = { number: 3, since: "2026-11-20T08:03:00.000Z", checked: 2, most: 2, counts };

  test.each<[string, Parameters<typeof factsOf>[0], Partial<Wait>]>([
    [
      "a stage that is updating",
      { ...going(stageRun(119, "canary", passed), quiet), rolloutState: { checking } },
      { blocker: "canary", message: "a reconcile is answered when stage canary has finished rollout 119: 0 of 1 done" },
    ],
    [
      "clusters that catch up",
      {
        ...going(stageRun(119, "canary", passed)),
        rolloutState: { checking, catchUps: { waiting: 0, changing: 1, failed: 0 } },
      },
      { message: "a reconcile is answered when no cluster is changing: 1 still is" },
    ],
    [
      "workers that have not checked",
      { ...going(stageRun(119, "canary", { ...passed, counts: { Succeeded: 5 } })), rolloutState: { checking } },
      { message: "a reconcile is answered when every cluster is checked: 2 of 5 are" },
    ],
  ])("a reconcile waits for %s", (_what, given, expected) => {
    const about = { reason: "reconcile", since: "2026-11-20T08:03:00.000Z", clear: [] };
    expect(waitsOf(factsOf(given))).toMatchObject([{ ...about, ...expected }]);
  });
});

test("a Source that is missing or not ready is listed, also during a rollout", () => {
  const message = "template web: Source app has no artifact yet; see: starling describe source/app -n payments";
  expect(waitsOf(factsOf({ ...going(quiet), facts: { unready: message } }))).toEqual([
    { reason: "source", message, clear: [] },
  ]);
});

describe("clusters that failed to catch up", () => {
  const catchUps = { waiting: 1, changing: 0, failed: 1 };

  test("clusters that failed to catch up stop the other catch-ups of their stage", () => {
    const { stageRuns, stages } = going(stageRun(119, "canary", { ...passed, counts: { Succeeded: 4 } }));
    const facts = factsOf({
      stageRuns,
      stages: stages.map((one) => ({ ...one, failedCatchUps: 2 })),
      rolloutState: { catchUps: { ...catchUps, failed: 2 } },
      facts: { failedCatchUps: [catchUp("c9"), catchUp("c8")] },
    });
    expect(waitsOf(facts)).toEqual([
      {
        reason: "catchUps",
        stage: "canary",
        clusters: { count: 2, names: ["c9", "c8"] },
        message:
          "no other cluster catches up: 2 failed (allowed: 1): c9: ApplyFailed: 1 of 4 objects failed; 1 cluster waits",
        since: "2026-11-20T08:01:00.000Z",
        clear: [{ verb: "reconcile" }, { verb: "pace", field: "maxFailures" }],
      },
    ]);
  });

  test("clusters that failed to catch up are listed also within the budget", () => {
    const { rollout } = groupRow().spec;
    const row = groupRow({ spec: { ...groupRow().spec, rollout: { ...rollout, maxFailures: 1 } } });
    const { stageRuns, stages } = going(stageRun(119, "canary", { ...passed, counts: { Succeeded: 4 } }));
    const given = {
      stageRuns,
      row,
      stages: stages.map((one) => ({ ...one, failedCatchUps: 1 })),
      rolloutState: { catchUps },
    };
    expect(waitsOf(factsOf({ ...given, facts: { failedCatchUps: [catchUp("c9")] } }))).toMatchObject([
      {
        reason: "catchUps",
        message: "1 cluster failed to catch up: c9: ApplyFailed: 1 of 4 objects failed",
        clear: [{ verb: "reconcile" }],
      },
    ]);
  });
});

describe("requests that the planner has not answered", () => {
  const stands = stageRun(119, "canary", { phase: "Halted", counts: { Failed: 1, Waiting: 1 } });
  const act = (number: number) => ({ by, at: "2026-11-20T08:00:00.000Z", number });
  const asked = (given: Partial<Parameters<typeof factsOf>[0]>) =>
    waitsOf(factsOf({ ...going(stands), ...given })).filter(({ reason }) => reason === "asked");
  const seen = (number: number) => ({ conditions: [], observedGeneration: 1, observedOperation: number });

  test("no request is open when the planner has seen everything", () => {
    expect(asked({})).toEqual([]);
    const operations = { reconcile: act(1), refresh: act(2), resumed: act(3), recovered: act(4) };
    expect(asked({ row: groupRow({ operations }) })).toEqual([]);
  });

  test("a new generation of the spec is an open request", () => {
    expect(asked({ row: groupRow({ generation: 2, status: seen(0) }) })).toEqual([
      { reason: "asked", blocker: "planner", message: "the planner has not started yet: the spec", clear: [] },
    ]);
  });

  test("operations of people with newer numbers are open requests, with their time", () => {
    const operations = { reconcile: act(1), recovered: act(2), resumed: act(3) };
    expect(asked({ row: groupRow({ operations, status: seen(1) }) })).toEqual([
      {
        reason: "asked",
        blocker: "planner",
        message: "the planner has not started yet: resume, recover",
        since: "2026-11-20T08:00:00.000Z",
        clear: [],
      },
    ]);
  });

  test.each<[string, Partial<Parameters<typeof factsOf>[0]>]>([
    ["reconcile", { row: groupRow({ operations: { reconcile: act(2) } }), rolloutState: { handledReconcile: 1 } }],
    [
      "reconcile",
      {
        row: groupRow({ operations: { reconcile: act(2) } }),
        rolloutState: { jobs: [{ do: "retry", stageRun: refOf(stands) }] },
      },
    ],
    ["refresh", { row: groupRow({ operations: { refresh: act(2) } }), rolloutState: { handledRefresh: 1 } }],
  ])(
    "a %s that the planner has seen but not carried out is an open request, unless the group is suspended",
    (verb, given) => {
      expect(asked(given)).toMatchObject([{ message: `the planner has not started yet: ${verb}` }]);
      const operations = { ...given.row?.operations, suspended: act(3) };
      expect(asked({ ...given, row: groupRow({ operations }) })).toEqual([]);
    },
  );

  test("a verdict that a changed budget has made outdated is an open request", () => {
    const { spec } = groupRow();
    const row = groupRow({ spec: { ...spec, rollout: { ...spec.rollout, maxFailures: 1 } } });
    expect(asked({ row })).toMatchObject([{ message: "the planner has not started yet: the verdict on stage canary" }]);
    expect(asked({ row: { ...row, operations: { suspended: act(1) } } })).toEqual([]);
  });

  test("the verdict of a rollout before a deletion is not an open request", () => {
    const operations = { deletion: { ...act(1), cascade: "delete" as const } };
    const deletion = stageRun(120, "rest", { phase: "Halted", counts: { Failed: 1 } });
    expect(asked({ ...going(deletion, stands), row: groupRow({ operations }) })).toEqual([]);
  });

  test("a requested poll of a Source is an open request", () => {
    expect(asked({ facts: { askedSources: ["app"] } })).toEqual([
      {
        reason: "asked",
        blocker: "source/app",
        message: "source/app has not been polled since that was requested",
        clear: [],
      },
    ]);
  });
});

test("the most important wait comes first", () => {
  const halted = stageRun(120, "canary", { phase: "Halted", counts: { Failed: 1 } });
  const rest = stageRun(119, "rest", {
    counts: { Assigned: 2, Waiting: 3, Rendering: 1 },
    holds: [{ cause: "rendering", clusters: [5] }],
  });
  const waits = waitsOf(
    factsOf({ ...going(halted, rest), rolloutState: { catchUps: { waiting: 0, changing: 0, failed: 1 } } }),
  );
  expect(waits.map(({ reason }) => reason)).toEqual(["budget", "catchUps", "slots", "rendering"]);
});
