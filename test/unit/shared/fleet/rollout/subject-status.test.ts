import { describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { legKey, refOf } from "#shared/fleet/rollout/legs.ts";
import { identityOf } from "#shared/fleet/rollout/plan.ts";
import { type StatusFacts, subjectStatus } from "#shared/fleet/rollout/subject-status.ts";
import type { SubjectState, SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import type { LegRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";
import { groupRow, leg, stage } from "#test/unit/cli/format/overview-fixture.ts";
import { unitRow, unitStage } from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-21T09:00:00.000Z");
const act = { by: "ana", at: "2026-11-21T08:30:00.000Z", number: 3 };
const none = { selected: 0, ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
const counts = { selected: 3, ready: 3, changing: 0, failed: 0, unreachable: 0, waiting: 0 };

const row = groupRow({ status: { conditions: [] } });
/** Nothing was ever taken by a stage. */
const nothing: StatusFacts = {
  now,
  unit: unitRow([]),
  legs: new Map(),
  desired: { ok: true, plan: { templates: [], contentHash: "sha256:12" } },
};
/** Everything is on content 12. */
const over = through(leg(12, "all", { phase: "Passed", counts: { Succeeded: 3 } }));
/** As long as a `reconcile` goes on. */
const looking = { number: 3, since: act.at, looked: 0, most: 0, counts };

/** Where the unit says something else, too. */
function overWith(unit: Partial<UnitRow>): Pick<StatusFacts, "unit"> {
  return { unit: { ...over.unit, ...unit } };
}

/** Three clusters: one ready, one changing, one waiting. */
const rolling = through(leg(12, "all", { counts: { Succeeded: 1, Assigned: 1, Waiting: 1 } }));

/** One stage, with a leg that goes through it, or has passed. */
function through(one: LegRow, members = one.size): StatusFacts {
  return { ...nothing, unit: unitRow([unitStage(one, { members })]), legs: new Map([[legKey(one), one]]) };
}

describe("the status of a subject", () => {
  test("notes a commit that changes nothing of what its templates take", () => {
    const template = {
      name: "a",
      source: "app",
      revision: "main@sha1:aaa",
      artifactDigest: "sha256:a",
      path: "apps/a",
      apply: applyOptions.parse({}),
    };
    const newest = { templates: [template], contentHash: "sha256:12" };
    const identity = identityOf(newest, { inputsVersion: over.unit.inputsVersion, recovered: undefined });
    const ledger = [{ number: 12, identity, revision: "main@sha1:aaa", at: act.at }];
    const notedAt = (revision: string, contentHash: string) => {
      const plan = { templates: [{ ...template, revision }], contentHash };
      return subjectStatus(row, { ...over, ...overWith({ ledger }), desired: { ok: true, plan } });
    };
    expect(notedAt("main@sha1:bbb", "sha256:12")).toMatchObject({ revision: "main@sha1:aaa", noted: "main@sha1:bbb" });
    expect(notedAt("main@sha1:aaa", "sha256:12")).not.toHaveProperty("noted");
    expect(notedAt("main@sha1:ccc", "sha256:13")).not.toHaveProperty("noted");
  });

  test("counts every selected cluster once while something is under way", () => {
    expect(subjectStatus(row, rolling)).toEqual({
      observedGeneration: 1,
      revision: "main@sha1:9f2c1ab",
      rollout: 12,
      stages: [{ name: "all", moving: 12 }],
      state: "Rolling",
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

  test("counts clusters that the leg does not move as ready", () => {
    const more = through(leg(12, "all", { counts: { Succeeded: 1, Assigned: 1, Waiting: 1 } }), 10);
    expect(subjectStatus(row, more).clusters).toMatchObject({ selected: 10, ready: 8 });
  });

  test("counts who has nothing of a stage that nothing has passed as waiting", () => {
    const canary = leg(1, "canary", { counts: { Assigned: 1 } });
    const facts = { ...through(canary), unit: unitRow([unitStage(canary), stage("rest", { members: 9 })]) };
    expect(subjectStatus(row, facts).clusters).toMatchObject({ selected: 10, ready: 0, changing: 1, waiting: 9 });
  });

  test("counts who has a slot and failed, or waits for it, once: they sum to who is selected", () => {
    const halted = leg(12, "all", { phase: "Halted", counts: { Failed: 1, Waiting: 1, Succeeded: 1 } });
    const facts = through(halted);
    const unit = unitRow([unitStage(halted, { members: 3, changing: 2 })]);
    expect(subjectStatus(row, { ...facts, unit }).clusters).toEqual({
      selected: 3,
      ready: 1,
      changing: 0,
      failed: 1,
      unreachable: 0,
      waiting: 1,
    });
    const left = unitRow([unitStage(halted, { members: 1 })]);
    const { selected, ...others } = subjectStatus(row, { ...facts, unit: left }).clusters ?? none;
    expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(selected);
  });

  test("is not under way because of a cluster that came to a stage where no more are tried", () => {
    const unit = { ...over.unit, arrivals: { waiting: 1, changing: 0, failed: 1 } };
    const settled = { ...counts, ready: 1, failed: 1, waiting: 1 };
    expect(subjectStatus(row, { ...over, unit, settled, stopped: 1 }).state).toBe("Degraded");
    expect(subjectStatus(row, { ...over, unit, settled }).state).toBe("Rolling");
  });

  test("counts of each stage what goes through it, else who is left behind, and the arrivals", () => {
    const canary = leg(13, "canary", { phase: "Passed", counts: { Succeeded: 2, Failed: 1, Superseded: 5 } });
    const early = leg(12, "early", { counts: { Assigned: 2, Unreachable: 1, Rendering: 2, Waiting: 1 } });
    // Of those that canary left behind, some have come back since.
    const passed = { ...unitStage(canary), members: 3, passed: refOf(canary) };
    const facts: StatusFacts = {
      ...nothing,
      unit: unitRow([passed, { ...unitStage(early), on: 11 }, stage("rest", { members: 10, on: 11 })], {
        arrivals: { waiting: 2, changing: 1, failed: 1 },
      }),
      legs: new Map([canary, early].map((one) => [legKey(one), one])),
    };
    expect(subjectStatus(row, facts)).toMatchObject({
      state: "Rolling",
      rollout: 13,
      stages: [
        { name: "canary", on: 13 },
        { name: "early", on: 11, moving: 12 },
        { name: "rest", on: 11 },
      ],
      clusters: { selected: 19, changing: 3, failed: 2, unreachable: 1, waiting: 5, ready: 8 },
    });
  });

  test.each<[string, Partial<StatusFacts["unit"]["arrivals"]>]>([
    ["waits", { waiting: 1 }],
    ["changes", { changing: 1 }],
  ])("is under way while a cluster that came %s", (_what, arrivals) => {
    const unit = { ...over.unit, arrivals: { ...over.unit.arrivals, ...arrivals } };
    expect(subjectStatus(row, { ...over, unit, settled: counts }).state).toBe("Rolling");
  });

  test.each<[string, Partial<StatusFacts>, object, SubjectState, string]>([
    ["nothing is left to do", { settled: counts }, {}, "Complete", "AllClustersReady"],
    ["a cluster is not ready", { settled: { ...counts, ready: 2, failed: 1 } }, {}, "Degraded", "Degraded"],
    ["a cluster changes", { settled: { ...counts, ready: 2, changing: 1 } }, {}, "Reconciling", "Reconciling"],
    [
      "one of those named is not registered",
      { settled: counts, ...overWith({ missing: ["x"] }) },
      {},
      "Degraded",
      "ClusterNotFound",
    ],
    ["nothing matches", { settled: none }, {}, "NoClusters", "NoClusters"],
    [
      "nothing that is named is there",
      { settled: none, ...overWith({ missing: ["x"] }) },
      {},
      "ClusterNotFound",
      "ClusterNotFound",
    ],
    ["nothing was ever rolled out", nothing, {}, "Waiting", "NothingRolledOut"],
    ["a look was asked for", { settled: counts }, { reconcile: act }, "Reconciling", "Reconciling"],
    [
      "it goes on",
      { settled: counts, ...overWith({ handledReconcile: 3, looking }) },
      { reconcile: act },
      "Reconciling",
      "Reconciling",
    ],
    [
      "it was answered",
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
    ["it is suspended", { settled: counts }, { suspended: act }, "Suspended", "Suspended"],
    ["it is being deleted", { settled: counts }, { deletion: { ...act, cascade: "delete" } }, "Deleting", "Deleting"],
    [
      "it is suspended while it is being deleted",
      {},
      { suspended: act, deletion: { ...act, cascade: "delete" } },
      "Suspended",
      "Suspended",
    ],
  ])("when %s", (_name, facts, operations, state, reason) => {
    const status = subjectStatus({ ...row, operations }, { ...over, ...facts });
    expect(status.state).toBe(state);
    expect(status.conditions).toMatchObject([
      { type: "Ready", reason, status: reason === "AllClustersReady" ? "True" : "False" },
    ]);
    expect(status.observedOperation).toBe(Object.keys(operations).length === 0 ? undefined : 3);
  });

  test.each<[LegRow["phase"], SubjectState]>([
    ["Halted", "Halted"],
    ["NothingVerified", "Stalled"],
    ["TooManyUnreachable", "Stalled"],
  ])("says why something stands still: %s", (phase, state) => {
    const standing = through(leg(12, "all", { phase, message: "1 cluster failed", counts: { Failed: 1, Waiting: 2 } }));
    expect(subjectStatus(row, standing)).toMatchObject({
      state,
      conditions: [{ status: "False", reason: state, message: "1 cluster failed" }],
    });
  });

  test("says of several that stand still the worst, whatever else goes on", () => {
    const legs = [
      leg(14, "canary", { counts: { Assigned: 1 } }),
      leg(13, "early", { phase: "NothingVerified", message: "no evidence", counts: { Unreachable: 1 } }),
      leg(12, "rest", { phase: "Halted", message: "failed", counts: { Failed: 1 } }),
    ];
    const facts = {
      ...nothing,
      unit: unitRow(legs.map((one) => stage(one.stage, { members: 1, moving: refOf(one) }))),
      legs: new Map(legs.map((one) => [legKey(one), one])),
    };
    expect(subjectStatus(row, facts)).toMatchObject({ state: "Halted", conditions: [{ message: "failed" }] });
  });

  test("keeps what it knew when it is told nothing new, and since when", () => {
    const since = "2026-11-20T00:00:00.000Z";
    const before: SubjectStatus = {
      revision: "r",
      clusters: counts,
      conditions: [{ type: "Ready", status: "True", reason: "AllClustersReady", message: "", since }],
    };
    const known = { ...row, status: before };
    expect(subjectStatus(known, { ...nothing, settled: counts })).toMatchObject({
      revision: "r",
      clusters: counts,
      conditions: [{ since }],
    });
    const worse = subjectStatus(known, { ...nothing, settled: { ...counts, ready: 0 } });
    expect(worse.conditions).toMatchObject([{ status: "False", since: now.toISOString() }]);
  });
});

describe("what is said of", () => {
  test("a leg that has passed is not that all is well: it names those it moved", () => {
    expect(subjectStatus(row, over)).toMatchObject({ conditions: [{ status: "False" }] });
    expect(subjectStatus(row, over).state).not.toBe("Complete");
  });

  test("an empty selection names it", () => {
    const clusters = { selector: { matchLabels: { ring: "canary" } } };
    const { conditions } = subjectStatus({ ...row, spec: { ...row.spec, clusters } }, { ...over, settled: none });
    expect(conditions[0]?.message).toBe(
      "no registered cluster matches ring=canary; nothing is rolled out until one does",
    );
  });

  test("clusters that are not registered names them", () => {
    const message = (missing: readonly string[], settled = none) =>
      subjectStatus(row, { ...over, ...overWith({ missing }), settled }).conditions[0]?.message;
    expect(message(["x"])).toBe("cluster x is not registered; nothing is rolled out until it is");
    expect(message(["x", "y"])).toBe("clusters x, y are not registered; nothing is rolled out until one is");
    expect(message(["d", "e", "f", "g"], counts)).toBe(
      "3 of 3 clusters ready; clusters d, e, f and 1 more are not registered",
    );
  });

  const deleting = { ...row, operations: { deletion: { ...act, cascade: "delete" as const } } };

  test("a deletion that waits names for whom, and how to go on without", () => {
    const away = leg(12, "all", { counts: { Succeeded: 1, Unreachable: 2 }, away: ["b", "c"] });
    expect(subjectStatus(deleting, through(away))).toMatchObject({
      state: "Deleting",
      conditions: [
        {
          message:
            "1 of 3 clusters done; b, c do not answer, and the deletion waits; to go on without: starling delete cluster/b --cascade=orphan",
        },
      ],
    });
  });

  test("a deletion that failed says what to do", () => {
    const halted = leg(12, "all", {
      phase: "Halted",
      reason: "DeletionFailed",
      message: "1 cluster failed",
      counts: { Failed: 1 },
    });
    const [condition] = subjectStatus(deleting, through(halted)).conditions;
    expect(condition).toMatchObject({ reason: "DeletionFailed" });
    expect(condition?.message).toBe(
      "1 cluster failed; mend that and reconcile, or delete it with --cascade=orphan to leave its objects where they are",
    );
  });

  test("a reconcile that was answered is remembered", () => {
    const facts = { ...over, ...overWith({ handledReconcile: 4 }), settled: counts };
    const answered = subjectStatus({ ...row, operations: { reconcile: { ...act, number: 4 } } }, facts);
    expect(answered.reconciled).toBe(4);
    const known = { ...row, status: answered };
    expect(subjectStatus(known, facts).reconciled).toBe(4);
    const again = { ...known, operations: { reconcile: { ...act, number: 5 } } };
    expect(subjectStatus(again, facts).reconciled).toBe(4);
  });
});
