import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { planIdentity } from "#shared/fleet/rollout/desired-plan.ts";
import { ownerStatus, type StatusFacts } from "#shared/fleet/rollout/owner-status.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { OwnerState, OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { groupRow, stage, stageRun } from "#test/unit/cli/format/overview-fixture.ts";
import { rolloutStateRow, stageRecord } from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-21T09:00:00.000Z");
const act = { by: "ana", at: "2026-11-21T08:30:00.000Z", number: 3 };
const none = { selected: 0, ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
const counts = { selected: 3, ready: 3, changing: 0, failed: 0, unreachable: 0, waiting: 0 };

const row = groupRow({ status: { conditions: [] } });
/** No stage has ever taken a rollout. */
const nothing: StatusFacts = {
  now,
  rolloutState: rolloutStateRow([]),
  stageRuns: new Map(),
  desired: { ok: true, plan: { templates: [], planHash: "sha256:12" } },
};
/** Every stage has the current rollout 12. */
const over = through(stageRun(12, "all", { phase: "Passed", counts: { Succeeded: 3 } }));
/** The facts while a `reconcile` is in progress. */
const checking = { number: 3, since: act.at, checked: 0, most: 0, counts };

/** The same with other fields of the rollout state. */
function overWith(rolloutState: Partial<RolloutStateRow>): Pick<StatusFacts, "rolloutState"> {
  return { rolloutState: { ...over.rolloutState, ...rolloutState } };
}

/** Three clusters: one ready, one changing, one waiting. */
const rolling = through(stageRun(12, "all", { counts: { Succeeded: 1, Assigned: 1, Waiting: 1 } }));

/** One stage, with a stage run that updates it or has passed. */
function through(one: StageRunRow, members = one.size): StatusFacts {
  return {
    ...nothing,
    rolloutState: rolloutStateRow([stageRecord(one, { members })]),
    stageRuns: new Map([[stageRunKey(one), one]]),
  };
}

describe("the status of an owner", () => {
  test("a new commit that changes none of the templates' files is noted", () => {
    const template = {
      name: "a",
      source: "app",
      revision: "main@sha1:aaa",
      artifactDigest: "sha256:a",
      path: "apps/a",
      apply: applyOptions.parse({}),
    };
    const newest = { templates: [template], planHash: "sha256:12" };
    const identity = planIdentity(newest, { inputsVersion: over.rolloutState.inputsVersion, recovered: undefined });
    const ledger = [{ number: 12, identity, revision: "main@sha1:aaa", at: act.at }];
    const notedAt = (revision: string, planHash: string) => {
      const plan = { templates: [{ ...template, revision }], planHash };
      return ownerStatus(row, { ...over, ...overWith({ ledger }), desired: { ok: true, plan } });
    };
    expect(notedAt("main@sha1:bbb", "sha256:12")).toMatchObject({ revision: "main@sha1:aaa", noted: "main@sha1:bbb" });
    expect(notedAt("main@sha1:aaa", "sha256:12")).not.toHaveProperty("noted");
    expect(notedAt("main@sha1:ccc", "sha256:13")).not.toHaveProperty("noted");
  });

  test("every selected cluster is counted once during a rollout", () => {
    expect(ownerStatus(row, rolling)).toEqual({
      observedGeneration: 1,
      revision: "main@sha1:9f2c1ab",
      rollout: 12,
      stages: [{ name: "all", updatingTo: 12 }],
      state: "Rolling",
      stateSince: now.toISOString(),
      clusters: { selected: 3, ready: 1, changing: 1, failed: 0, unreachable: 0, waiting: 1 },
      asOf: now.toISOString(),
      conditions: [
        {
          type: "Ready",
          status: "False",
          reason: "Rolling",
          message: "1 of 3 clusters ready",
          since: expect.any(String),
        },
      ],
    });
  });

  test("a group whose stage waits for approvals, bakes, or waits for a window says so", () => {
    const saidOf = (rest: Partial<StageRunRow>) =>
      ownerStatus(row, through(stageRun(12, "all", { counts: { Waiting: 3 }, ...rest }))).conditions[0];
    expect(saidOf({ phase: "Gated", message: "0 of 2 approvals of plan ab12 in stage all" })).toMatchObject({
      reason: "RolloutGated",
      message: "0 of 3 clusters ready; waits for approvals: 0 of 2 approvals of plan ab12 in stage all",
    });
    expect(saidOf({ phase: "Baking", message: "stage all bakes for 1h" })).toMatchObject({
      reason: "Rolling",
      message: expect.stringMatching(/; stage all bakes for 1h$/),
    });
    expect(saidOf({ holds: [{ cause: "window", name: "nights", clusters: [0, 1] }] })).toMatchObject({
      reason: "Rolling",
      message: expect.stringMatching(/; clusters wait for window nights$/),
    });
  });

  test.each<[string, Partial<StageRunRow>, OwnerState]>([
    ["is going back", {}, "RollingBack"],
    ["has gone back", { phase: "Passed" }, "Complete"],
  ])("a group whose stage %s says so", (_what, rest, state) => {
    const back = stageRun(12, "all", { counts: { Succeeded: 3 }, rollback: true, ...rest });
    expect(ownerStatus(row, { ...through(back), settled: counts }).state).toBe(state);
  });

  test("a group is RollingBack where another stage takes a rollout meanwhile", () => {
    const [canary, early] = [stageRun(14, "canary", {}), stageRun(13, "early", { rollback: true })];
    const facts: StatusFacts = {
      ...nothing,
      rolloutState: rolloutStateRow([stageRecord(canary), { ...stageRecord(early), current: 13 }]),
      stageRuns: new Map([canary, early].map((one) => [stageRunKey(one), one])),
    };
    expect(ownerStatus(row, facts).state).toBe("RollingBack");
  });

  test("clusters outside of the stage run's snapshot count as ready", () => {
    const more = through(stageRun(12, "all", { counts: { Succeeded: 1, Assigned: 1, Waiting: 1 } }), 10);
    expect(ownerStatus(row, more).clusters).toMatchObject({ selected: 10, ready: 8 });
  });

  test("clusters of a stage without a current rollout count as waiting", () => {
    const canary = stageRun(1, "canary", { counts: { Assigned: 1 } });
    const facts = {
      ...through(canary),
      rolloutState: rolloutStateRow([stageRecord(canary), stage("rest", { members: 9 })]),
    };
    expect(ownerStatus(row, facts).clusters).toMatchObject({ selected: 10, ready: 0, changing: 1, waiting: 9 });
  });

  test("a cluster with a slot that failed or waits is counted once, so that the counts sum up to the selected clusters", () => {
    const halted = stageRun(12, "all", { phase: "Halted", counts: { Failed: 1, Waiting: 1, Succeeded: 1 } });
    const facts = through(halted);
    const rolloutState = rolloutStateRow([stageRecord(halted, { members: 3, changing: 2 })]);
    expect(ownerStatus(row, { ...facts, rolloutState }).clusters).toEqual({
      selected: 3,
      ready: 1,
      changing: 0,
      failed: 1,
      unreachable: 0,
      waiting: 1,
    });
    const left = rolloutStateRow([stageRecord(halted, { members: 1 })]);
    const { selected, ...others } = ownerStatus(row, { ...facts, rolloutState: left }).clusters ?? none;
    expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(selected);
  });

  test("a cluster that waits to catch up does not make the group Rolling where no more catch-ups are tried", () => {
    const rolloutState = { ...over.rolloutState, catchUps: { waiting: 1, changing: 0, failed: 1 } };
    const settled = { ...counts, ready: 1, failed: 1, waiting: 1 };
    expect(ownerStatus(row, { ...over, rolloutState, settled, stopped: 1 }).state).toBe("Degraded");
    expect(ownerStatus(row, { ...over, rolloutState, settled }).state).toBe("Rolling");
  });

  test("each stage counts its stage run, or else the clusters that it left behind, and the catch-ups", () => {
    const canary = stageRun(13, "canary", { phase: "Passed", counts: { Succeeded: 2, Failed: 1, Superseded: 5 } });
    const early = stageRun(12, "early", { counts: { Assigned: 2, Unreachable: 1, Rendering: 2, Waiting: 1 } });
    // Some clusters that canary left behind have caught up since.
    const passed = { ...stageRecord(canary), members: 3, passed: refOf(canary) };
    const facts: StatusFacts = {
      ...nothing,
      rolloutState: rolloutStateRow(
        [passed, { ...stageRecord(early), current: 11 }, stage("rest", { members: 10, current: 11 })],
        {
          catchUps: { waiting: 2, changing: 1, failed: 1 },
        },
      ),
      stageRuns: new Map([canary, early].map((one) => [stageRunKey(one), one])),
    };
    expect(ownerStatus(row, facts)).toMatchObject({
      state: "Rolling",
      rollout: 13,
      stages: [
        { name: "canary", current: 13 },
        { name: "early", current: 11, updatingTo: 12 },
        { name: "rest", current: 11 },
      ],
      clusters: { selected: 19, changing: 3, failed: 2, unreachable: 1, waiting: 5, ready: 8 },
    });
  });

  test.each<[string, Partial<StatusFacts["rolloutState"]["catchUps"]>]>([
    ["waits", { waiting: 1 }],
    ["changes", { changing: 1 }],
  ])("a group is Rolling while a catch-up %s", (_what, catchUps) => {
    const rolloutState = { ...over.rolloutState, catchUps: { ...over.rolloutState.catchUps, ...catchUps } };
    expect(ownerStatus(row, { ...over, rolloutState, settled: counts }).state).toBe("Rolling");
  });

  test.each<[string, Partial<StatusFacts>, object, OwnerState, string]>([
    ["all clusters are ready", { settled: counts }, {}, "Complete", "AllClustersReady"],
    ["a cluster is not ready", { settled: { ...counts, ready: 2, failed: 1 } }, {}, "Degraded", "Degraded"],
    ["a cluster changes", { settled: { ...counts, ready: 2, changing: 1 } }, {}, "Reconciling", "Reconciling"],
    [
      "a named cluster is not registered",
      { settled: counts, ...overWith({ missing: ["x"] }) },
      {},
      "Degraded",
      "ClusterNotFound",
    ],
    ["no cluster matches", { settled: none }, {}, "NoClusters", "NoClusters"],
    [
      "no named cluster is registered",
      { settled: none, ...overWith({ missing: ["x"] }) },
      {},
      "ClusterNotFound",
      "ClusterNotFound",
    ],
    ["nothing was ever rolled out", nothing, {}, "Waiting", "NothingRolledOut"],
    ["a reconcile was requested", { settled: counts }, { reconcile: act }, "Reconciling", "Reconciling"],
    [
      "the reconcile is in progress",
      { settled: counts, ...overWith({ handledReconcile: 3, checking }) },
      { reconcile: act },
      "Reconciling",
      "Reconciling",
    ],
    [
      "the reconcile was answered",
      { settled: counts, ...overWith({ handledReconcile: 3 }) },
      { reconcile: act },
      "Complete",
      "AllClustersReady",
    ],
    [
      "a Source is missing",
      { desired: { ok: false, reason: "SourceNotFound", message: "no Source" } },
      {},
      "Waiting",
      "SourceNotFound",
    ],
    ["the group is suspended", { settled: counts }, { suspended: act }, "Suspended", "Suspended"],
    [
      "the group is being deleted",
      { settled: counts },
      { deletion: { ...act, cascade: "delete" } },
      "Deleting",
      "Deleting",
    ],
    [
      "the group is suspended while it is being deleted",
      {},
      { suspended: act, deletion: { ...act, cascade: "delete" } },
      "Suspended",
      "Suspended",
    ],
  ])("the status when %s", (_name, facts, operations, state, reason) => {
    const status = ownerStatus({ ...row, operations }, { ...over, ...facts });
    expect(status.state).toBe(state);
    expect(status.conditions).toMatchObject([
      { type: "Ready", reason, status: reason === "AllClustersReady" ? "True" : "False" },
    ]);
    expect(status.observedOperation).toBe(Object.keys(operations).length === 0 ? undefined : 3);
  });

  test.each<[StageRunRow["phase"], OwnerState]>([
    ["Halted", "Halted"],
    ["NothingVerified", "Stalled"],
    ["TooManyUnreachable", "Stalled"],
  ])("the status says why a stage run stands still: %s", (phase, state) => {
    const standing = through(
      stageRun(12, "all", { phase, message: "1 cluster failed", counts: { Failed: 1, Waiting: 2 } }),
    );
    expect(ownerStatus(row, standing)).toMatchObject({
      state,
      conditions: [{ status: "False", reason: state, message: "1 cluster failed" }],
    });
  });

  test("the status names the worst of several stage runs that stand still", () => {
    const stageRuns = [
      stageRun(14, "canary", { counts: { Assigned: 1 } }),
      stageRun(13, "early", { phase: "NothingVerified", message: "no evidence", counts: { Unreachable: 1 } }),
      stageRun(12, "rest", { phase: "Halted", message: "failed", counts: { Failed: 1 } }),
    ];
    const facts = {
      ...nothing,
      rolloutState: rolloutStateRow(stageRuns.map((one) => stage(one.stage, { members: 1, updatingTo: refOf(one) }))),
      stageRuns: new Map(stageRuns.map((one) => [stageRunKey(one), one])),
    };
    expect(ownerStatus(row, facts)).toMatchObject({ state: "Halted", conditions: [{ message: "failed" }] });
  });

  test("the state has the time at which it began, and not the time at which the condition Ready began", () => {
    const minutes = (count: number) => new Date(now.getTime() + count * 60_000);
    const begun = ownerStatus(row, rolling);
    expect(begun).toMatchObject({ state: "Rolling", stateSince: now.toISOString() });
    const later = ownerStatus({ ...row, status: begun }, { ...rolling, now: minutes(1) });
    expect(later).toMatchObject({ state: "Rolling", stateSince: now.toISOString() });
    const stageRunHalted = through(stageRun(12, "all", { phase: "Halted", counts: { Failed: 1 } }));
    const halted = ownerStatus({ ...row, status: later }, { ...stageRunHalted, now: minutes(2) });
    expect(halted).toMatchObject({
      state: "Halted",
      stateSince: minutes(2).toISOString(),
      conditions: [{ status: "False", since: now.toISOString() }],
    });
  });

  test("a state that an older version wrote without a time stays without one", () => {
    const { stateSince: _none, ...before } = ownerStatus(row, rolling);
    expect(ownerStatus({ ...row, status: before }, rolling)).not.toHaveProperty("stateSince");
  });

  test("the status keeps known facts without new ones, and the time since when its condition holds", () => {
    const since = "2026-11-20T00:00:00.000Z";
    const before: OwnerStatus = {
      revision: "r",
      clusters: counts,
      conditions: [{ type: "Ready", status: "True", reason: "AllClustersReady", message: "", since }],
    };
    const known = { ...row, status: before };
    expect(ownerStatus(known, { ...nothing, settled: counts })).toMatchObject({
      revision: "r",
      clusters: counts,
      conditions: [{ since }],
    });
    const worse = ownerStatus(known, { ...nothing, settled: { ...counts, ready: 0 } });
    expect(worse.conditions).toMatchObject([{ status: "False", since: now.toISOString() }]);
  });
});

describe("the message of the status", () => {
  test("a passed stage run alone does not make the group Complete", () => {
    expect(ownerStatus(row, over)).toMatchObject({ conditions: [{ status: "False" }] });
    expect(ownerStatus(row, over).state).not.toBe("Complete");
  });

  test("an empty selection is named in the message", () => {
    const clusters = { selector: { matchLabels: { ring: "canary" } } };
    const { conditions } = ownerStatus({ ...row, spec: { ...row.spec, clusters } }, { ...over, settled: none });
    expect(conditions[0]?.message).toBe(
      "no registered cluster matches ring=canary; nothing is rolled out until one does",
    );
  });

  test("clusters that are not registered are named in the message", () => {
    const message = (missing: readonly string[], settled = none) =>
      ownerStatus(row, { ...over, ...overWith({ missing }), settled }).conditions[0]?.message;
    expect(message(["x"])).toBe("cluster x is not registered; nothing is rolled out until it is");
    expect(message(["x", "y"])).toBe("clusters x, y are not registered; nothing is rolled out until one is");
    expect(message(["d", "e", "f", "g"], counts)).toBe(
      "3 of 3 clusters ready; clusters d, e, f and 1 more are not registered",
    );
  });

  const deleting = { ...row, operations: { deletion: { ...act, cascade: "delete" as const } } };

  test("a waiting deletion names the clusters that it waits for, and how to continue without them", () => {
    const away = stageRun(12, "all", { counts: { Succeeded: 1, Unreachable: 2 }, away: ["b", "c"] });
    expect(ownerStatus(deleting, through(away))).toMatchObject({
      state: "Deleting",
      conditions: [
        {
          message:
            "1 of 3 clusters done; b, c do not answer, and the deletion waits; to go on without: starling delete cluster/b --cascade=orphan",
        },
      ],
    });
  });

  test("a failed deletion says what to do", () => {
    const halted = stageRun(12, "all", {
      phase: "Halted",
      reason: "DeletionFailed",
      message: "1 cluster failed",
      counts: { Failed: 1 },
    });
    const [condition] = ownerStatus(deleting, through(halted)).conditions;
    expect(condition).toMatchObject({ reason: "DeletionFailed" });
    expect(condition?.message).toBe(
      "1 cluster failed; fix that and reconcile, or delete it with --cascade=orphan to leave its objects where they are",
    );
  });

  test("a reconcile that was answered stays recorded", () => {
    const facts = { ...over, ...overWith({ handledReconcile: 4 }), settled: counts };
    const answered = ownerStatus({ ...row, operations: { reconcile: { ...act, number: 4 } } }, facts);
    expect(answered.reconciled).toBe(4);
    const known = { ...row, status: answered };
    expect(ownerStatus(known, facts).reconciled).toBe(4);
    const again = { ...known, operations: { reconcile: { ...act, number: 5 } } };
    expect(ownerStatus(again, facts).reconciled).toBe(4);
  });
});
