import { describe, expect, test } from "vitest";
import { formatOverview, formatOverviewProgress } from "#cli/format/overview-text.ts";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import {
  groupRow,
  now,
  overview,
  stage,
  stageRun,
  target,
  threeRollouts,
} from "#test/unit/cli/format/overview-fixture.ts";
import { slotRow, syncRow } from "#test/unit/functions/api/row-fixture.ts";

describe("a group with three rollouts in progress", () => {
  test("the overview of ten clusters shows stages, rollouts, waits and each cluster", () => {
    const given = threeRollouts({ canary: 1, early: 4, rest: 5 }, { Succeeded: 1, Assigned: 2, Waiting: 1 });
    const early = given.stageRuns[1];
    if (early === undefined) throw new Error("early is not updating");
    const slots = [slotRow(early, { order: 1, cluster: "c3" }), slotRow(early, { order: 2, cluster: "c4" })];
    const syncs = new Map([["c3", [syncRow("c3", "shop.web", { phase: "Verifying" })]]]);
    const facts = { slots, syncs };
    const text = formatOverview({
      overview: overview({
        ...given,
        facts,
        rolloutState: { catchUps: { waiting: 1, changing: 0, failed: 0, away: 2 } },
      }),
      targets: [
        target("c1", "Succeeded", { stage: "canary" }),
        target("c2", "Succeeded", { stage: "early" }),
        target("c3", "Verifying", {
          stage: "early",
          reason: "Deployment shop/web 1/3",
          assignedAt: "2026-11-20T08:05:20.000Z",
        }),
        target("c4", "Applying", { stage: "early", assignedAt: "2026-11-20T08:06:50.000Z" }),
        target("c5", "Waiting", { stage: "early" }),
        ...["c6", "c7", "c8", "c9", "c10"].map((name) => target(name, "Succeeded")),
      ],
      lines: "some",
      now,
    });
    expect(text).toBe(`shop   Rolling   newest rollout 119: main@sha1:9f2c1ab (Waiting)   3 rollouts in its stages
2 of 2 changing (maxConcurrent 2) · per stage: maxFailures 0, maxUnreachable 10% · catch-ups: 1 waiting, 2 unreachable

  STAGE     CLUSTERS  CURRENT  UPDATING TO  DONE  FAILED/MAX  UNREACH/MAX  CHANGING  STATE
  1 canary  1         119      -            1     0           0            0         passed 08:05:30Z
  2 early   4         117      118          1     0/0         0/1          2         updating for 9m
  3 rest    5         117      -            5     0           0            0         passed 2026-11-19 18:00:00Z

  ROLLOUT  REVISION           AGE  PHASE     WHERE
  119      main@sha1:9f2c1ab  4m   Waiting   current in canary
  118      main@sha1:4be8a90  27m  Rolling   updating early
  117      main@sha1:77d01c3  15h  Complete  current in early, rest

  STAGE  WAIT   SINCE  CLEARED BY     MESSAGE
  early  slots  17m    maxConcurrent  1 cluster waits: 2 of 2 slots are in use; oldest: c3, Verifying
  -      slots  17m    maxConcurrent  1 cluster waits to catch up: 2 of 2 slots are in use; oldest: c3, Verifying
  early  stage  9m     -              rollout 119 waits until rollout 118 has passed stage early
  rest   stage  9m     -              waits for stage early: rollout 118 is in progress there, 1 of 4 done

  CLUSTER  STAGE  STATE      FOR   REVISION  REASON
  c4       early  Applying   10s   -
  c3       early  Verifying  100s  -         Deployment shop/web 1/3
  Waiting, early (1): c5
  Succeeded, canary (1): c1
  Succeeded, early (1): c2
  Succeeded, rest (5): c6 c7 c8 c9 c10
`);
  });

  test("the overview of ten thousand clusters shows progress bars, and counts problems by reason", () => {
    const { rollout } = groupRow().spec;
    const row = groupRow({
      spec: { ...groupRow().spec, rollout: { ...rollout, maxConcurrent: "5%", maxFailures: "1%" } },
    });
    const given = threeRollouts(
      { canary: 120, early: 1400, rest: 8480 },
      { Succeeded: 300, Unchanged: 20, Assigned: 480, Failed: 29, Unreachable: 3, Rendering: 12, Waiting: 556 },
    );
    const stageRuns = given.stageRuns.map((one) =>
      one.rollout === 118
        ? {
            ...one,
            preexistingFailures: 20,
            holds: [{ cause: "rendering" as const, clusters: Array.from({ length: 12 }, (_, order) => 900 + order) }],
          }
        : one,
    );
    const failing = Array.from({ length: 29 }, (_, index) =>
      target(`c${index}`, "Failed", {
        stage: "early",
        reason: `DeadlineExceeded: DaemonSet agent/agent: Pod agent-7d9f6b5c4-x${1000 + index}: ImagePullBackOff`,
      }),
    );
    const away = Array.from({ length: 3 }, (_, index) =>
      target(`d${index}`, "Unreachable", { stage: "early", reason: `ConnectTimeout: no answer from d${index}` }),
    );
    const text = formatOverview({
      overview: overview({ ...given, stageRuns, row, facts: { desired: "main@sha1:0ab3f9e" } }),
      targets: [...failing, ...away],
      lines: "some",
      now,
    });
    expect(
      text,
    ).toBe(`shop   Rolling   newest rollout 119: main@sha1:9f2c1ab (Waiting)   3 rollouts in its stages   desired: main@sha1:0ab3f9e
480 of 500 changing (maxConcurrent 5%) · per stage: maxFailures 1%, maxUnreachable 10%

  STAGE     CLUSTERS  CURRENT  UPDATING TO  DONE                             FAILED/MAX         UNREACH/MAX  CHANGING  STATE
  1 canary  120       119      -            120 ████████████████████ 100%    0                  0            0         passed 08:05:30Z
  2 early   1,400     117      118          320 ████░░░░░░░░░░░░░░░░  22%    9/13 (+20 before)  3/138        480       updating for 9m
  3 rest    8,480     117      -            8,480 ████████████████████ 100%  0                  0            0         passed 2026-11-19 18:00:00Z

  ROLLOUT  REVISION           AGE  PHASE     WHERE
  119      main@sha1:9f2c1ab  4m   Waiting   current in canary
  118      main@sha1:4be8a90  27m  Rolling   updating early
  117      main@sha1:77d01c3  15h  Complete  current in early, rest

  STAGE  WAIT       SINCE  CLEARED BY  MESSAGE
  early  rendering  9m     -           12 clusters wait for renderings
  early  stage      9m     -           rollout 119 waits until rollout 118 has passed stage early
  rest   stage      9m     -           waits for stage early: rollout 118 is in progress there, 320 of 1400 done

  PROBLEMS (32 of 10,000)                                                                      CLUSTERS
  DeadlineExceeded         DaemonSet agent/agent: Pod agent-7d9f6b5c4-x1000: ImagePullBackOff  29
  ConnectTimeout           no answer from d0                                                   3
  worst: c0 c1 c2 +29     starling rollout status shop -n payments --state failed --all
`);
  });

  test("the overview is one line of progress when the output is not a terminal", () => {
    const given = threeRollouts({ canary: 1, early: 4, rest: 5 }, { Succeeded: 1, Assigned: 2, Waiting: 1 });
    expect(formatOverviewProgress(overview(given), now)).toBe(
      "08:07:00Z shop Rolling: canary has rollout 119, early 1/4 done with rollout 118, rest has rollout 117, 2 changing, 0 failed",
    );
  });
});

describe("a group that stands still", () => {
  const halted = stageRun(119, "canary", {
    phase: "Halted",
    message: "1 of 2 clusters failed in stage canary (allowed: 0): c2: ApplyFailed: 1 of 4 objects failed",
    counts: { Failed: 1, Succeeded: 1 },
    failures: [{ cluster: "c2", reason: "ApplyFailed: 1 of 4 objects failed" }],
    transitions: [{ at: "2026-11-20T08:05:00.000Z", phase: "Halted", reason: "TooManyFailures", message: "" }],
  });
  const rest = stageRun(118, "rest", {
    phase: "Passed",
    counts: { Succeeded: 2 },
    endedAt: "2026-11-20T07:30:00.000Z",
  });
  const stages = [
    stage("canary", { members: 2, current: 118, updatingTo: refOf(halted) }),
    stage("rest", { members: 2, current: 118, passed: refOf(rest) }),
  ];

  test("the overview of a halted group ends with the commands that clear the halt", () => {
    const text = formatOverview({
      overview: overview({
        stageRuns: [halted, rest],
        stages,
        row: groupRow({ status: { state: "Halted", conditions: [] } }),
      }),
      targets: [
        target("c1", "Succeeded", { stage: "canary" }),
        target("c2", "Failed", {
          stage: "canary",
          sync: "shop.web",
          reason: "ApplyFailed: 1 of 4 objects failed",
          endedAt: "2026-11-20T08:05:00.000Z",
        }),
        target("c3", "Succeeded"),
        target("c4", "Succeeded"),
      ],
      lines: "some",
      now,
    });
    expect(text).toBe(`shop   Halted   newest rollout 119: main@sha1:9f2c1ab (Halted)   2 rollouts in its stages
0 of 2 changing (maxConcurrent 2) · per stage: maxFailures 0, maxUnreachable 10%

  STAGE     CLUSTERS  CURRENT  UPDATING TO  DONE  FAILED/MAX  UNREACH/MAX  CHANGING  STATE
  1 canary  2         118      119          1     1/0         0/1          0         halted for 2m
  2 rest    2         118      -            2     0           0            0         passed 07:30:00Z

  ROLLOUT  REVISION           AGE  PHASE     WHERE
  119      main@sha1:9f2c1ab  4m   Halted    stalled in canary
  118      main@sha1:4be8a90  27m  Complete  current in canary, rest

  STAGE   WAIT    SINCE  CLEARED BY                                                                                         MESSAGE
  canary  budget  2m     rollout rollback --to 118, rollout retry, rollout skip --cluster c2, rollout refresh, maxFailures  1 of 2 clusters failed in stage canary (allowed: 0): c2: ApplyFailed: 1 of 4 objects failed
  rest    stage   21m    -                                                                                                  waits for stage canary: rollout 119 is stalled there, 1 of 2 done

  CLUSTER  STAGE   STATE   FOR  REVISION  REASON
  c2       canary  Failed  2m   -         ApplyFailed: 1 of 4 objects failed
  Succeeded, canary (1): c1
  Succeeded, rest (2): c3 c4
  next: starling describe sync/shop.web --cluster c2 -n payments
        push a repair: the next rollout replaces a stalled one
        starling rollout rollback shop -n payments --to 118 --reason …   (takes the stages back to rollout 118, and holds the group)
        starling rollout retry shop -n payments --reason …   (tries the failed clusters again)
        starling rollout skip shop -n payments --cluster c2 --reason …   (goes on without it)
        starling rollout refresh shop -n payments --reason …   (tries all clusters of the stage again, as they are now)
        raise spec.rollout.maxFailures of syncgroup/shop -n payments, and apply it
`);
  });

  test("the overview of a suspended and frozen group names the commands that end the suspension and the freeze", () => {
    const by = "arn:aws:sts::111122223333:assumed-role/sre/ana";
    const suspended = { by, at: "2026-11-20T07:56:00.000Z", number: 1, reason: "INC-4711" };
    const freezeState = {
      freezes: [{ name: "us", by, at: "2026-11-20T08:00:00.000Z", reason: "INC-1", until: "2026-11-20T09:00:00.000Z" }],
      lifted: [],
    };
    const text = formatOverview({
      overview: overview({
        stageRuns: [rest],
        stages: stages.slice(1),
        row: groupRow({ operations: { suspended }, status: { state: "Suspended", conditions: [] } }),
        facts: { freezeState: { ok: true, freezeState } },
      }),
      targets: [],
      lines: "some",
      now,
    });
    expect(text).toMatch(/- +suspended +11m +resume +suspended by sre\/ana: INC-4711\n/);
    expect(text).toMatch(/- +frozen +7m +thaw us +us freezes every cluster, by sre\/ana: INC-1, until 09:00:00Z\n/);
    expect(text).toMatch(/ {2}next: starling resume syncgroup\/shop -n payments\n +starling thaw us\n$/);
  });

  test("the overview of a deletion that waits for an unreachable cluster names the commands to go on without it", () => {
    const deletion = { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1, cascade: "delete" } as const;
    const away = stageRun(119, "canary", {
      phase: "TooManyUnreachable",
      message: "1 of 1 cluster unreachable in stage canary (allowed: 0)",
      counts: { Unreachable: 1 },
      away: ["c2"],
    });
    const text = formatOverview({
      overview: overview({
        stageRuns: [away],
        stages: [stage("canary", { members: 1, current: 118, updatingTo: refOf(away) })],
        row: groupRow({ operations: { deletion }, status: { state: "Deleting", conditions: [] } }),
      }),
      targets: [],
      lines: "some",
      now,
    });
    expect(text).toMatch(
      /canary +unreachable .* unregister c2, delete --cascade=orphan +1 of 1 cluster unreachable .*: c2\n/,
    );
    expect(text).toMatch(
      / {2}next: starling delete cluster\/c2 --cascade=orphan +\(leaves its objects there\)\n +starling delete syncgroup\/shop -n payments --cascade=orphan +\(leaves the objects in all clusters\)\n$/,
    );
  });
});

test("the overview marks stages without clusters as empty, and stages that no rollout has reached as waiting", () => {
  const first = stageRun(1, "canary", { counts: { Assigned: 1 } });
  const text = formatOverview({
    overview: overview({
      stageRuns: [first],
      stages: [
        stage("canary", { members: 1, updatingTo: refOf(first) }),
        stage("early", {}),
        stage("rest", { members: 3 }),
      ],
    }),
    targets: [],
    lines: "some",
    now,
  });
  expect(text).toMatch(/1 canary +1 +- +1 +0 .* updating for 21m\n/);
  expect(text).toMatch(/2 early +0 +- +- +- .* empty\n/);
  expect(text).toMatch(/3 rest +3 +- +- +- .* waiting\n/);
});

describe("a long reason", () => {
  const long = `NotFound: there is no Namespace nowhere; ${"put it among the manifests; ".repeat(4)}the end`;
  const row = groupRow({ status: { state: "Rolling", conditions: [] } });
  const view = (columns?: number, lines: "all" | "some" = "all") =>
    formatOverview({
      overview: overview({ ...threeRollouts({ canary: 1, early: 4, rest: 50 }, { Assigned: 1 }), row }),
      targets: [target("c1", "Applying", { reason: long })],
      lines,
      columns,
      now,
    });

  test("a long reason is printed whole when the output is not a terminal, for a cluster and in the list of problems", () => {
    expect(view()).toContain(long);
    expect(view(undefined, "some")).toContain("put it among the manifests; the end");
  });

  test("a long reason is cut at the width of a terminal", () => {
    const line = view(100)
      .split("\n")
      .find((each) => each.includes("NotFound"));
    expect(line).toHaveLength(100);
    expect(line).toMatch(/…$/);
  });
});
