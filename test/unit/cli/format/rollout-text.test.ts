import { describe, expect, test } from "vitest";
import { formatProgress, formatRolloutStatus } from "#cli/format/rollout-text.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import { rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { now, stage, stageRun, target } from "#test/unit/cli/format/overview-fixture.ts";
import { rolloutRow } from "#test/unit/functions/api/row-fixture.ts";

const passed = { phase: "Passed", endedAt: "2026-11-20T08:01:02.000Z" } as const;

function rollout(
  stageRuns: readonly StageRunRow[],
  {
    stages = stageRuns.map(stageOf),
    ...rollout
  }: Partial<RolloutRow> & { readonly stages?: readonly StageRecord[] } = {},
): RolloutObject {
  const made = rolloutRow(12, { fromRevision: "main@sha1:77d01c3", ...rollout });
  return rolloutObject({ rollout: made, stages, stageRuns });
}

function stageOf(one: StageRunRow): StageRecord {
  const place = one.phase === "Passed" ? { current: one.rollout, passed: refOf(one) } : { updatingTo: refOf(one) };
  return stage(one.stage, { members: one.size, ...place });
}

describe("the status of one rollout", () => {
  test("the status shows few clusters one by one, the worst first, and finished clusters together", () => {
    const text = formatRolloutStatus({
      rollout: rollout([
        stageRun(12, "canary", { ...passed, counts: { Succeeded: 1 } }),
        stageRun(12, "rest", {
          phase: "Halted",
          reason: "TooManyFailures",
          message: "1 of 4 clusters failed in stage rest (allowed: 0)",
          counts: { Succeeded: 1, Failed: 1, Waiting: 1, Assigned: 1 },
        }),
      ]),
      targets: [
        target("c0", "Succeeded", { stage: "canary" }),
        target("c1", "Succeeded"),
        target("c2", "Verifying", { assignedAt: "2026-11-20T08:05:20.000Z", reason: "Deployment shop/web 1/3" }),
        target("c3", "Failed", {
          assignedAt: "2026-11-20T08:02:00.000Z",
          endedAt: "2026-11-20T08:06:00.000Z",
          reason: "DeadlineExceeded: Deployment shop/web: ImagePullBackOff",
          revision: "main@sha1:77d01c3ffffffffffffffffffffffffffffffffff",
          sync: "shop.web",
        }),
        target("c4", "Waiting"),
      ],
      lines: "some",
      now,
    });
    expect(text).toBe(`shop-12   main@sha1:9f2c1ab   from main@sha1:77d01c3   trigger: plan   plan c0
started 07:45:00Z, 22m ago
Halted: 1 of 4 clusters failed in stage rest (allowed: 0)

  STAGE     CLUSTERS  DONE  FAILED  UNREACH  CHANGING  STATE
  1 canary  1         1     0       0        0         passed 08:01:02Z
  2 rest    4         1     1       0        1         halted
  total     5         2     1       0        1         waiting 1

  CLUSTER  STAGE  STATE      FOR   REVISION           REASON
  c3       rest   Failed     60s   main@sha1:77d01c3  DeadlineExceeded: Deployment shop/web: ImagePullBackOff
  c2       rest   Verifying  100s  -                  Deployment shop/web 1/3
  Waiting, rest (1): c4
  Succeeded, canary (1): c0
  Succeeded, rest (1): c1
  next: starling describe sync/shop.web --cluster c3 -n payments
        push a repair, or see what clears it: starling rollout status shop -n payments
`);
  });

  test("the status shows many clusters as counts and reasons", () => {
    const failing = Array.from({ length: 29 }, (_, index) =>
      target(`c${index}`, "Failed", {
        reason: `DeadlineExceeded: DaemonSet agent/agent: Pod agent-7d9f6b5c4-x${1000 + index}: ImagePullBackOff`,
      }),
    );
    const away = Array.from({ length: 3 }, (_, index) =>
      target(`d${index}`, "Unreachable", { reason: `ConnectTimeout: no answer from d${index}` }),
    );
    const counts = { Succeeded: 3848, Failed: 29, Unreachable: 3, Assigned: 487, Rendering: 13, Waiting: 5500 };
    const text = formatRolloutStatus({
      rollout: rollout(
        [
          stageRun(12, "canary", {
            ...passed,
            endedAt: "2026-11-19T09:30:00.000Z",
            counts: { Succeeded: 100, Unchanged: 20 },
          }),
          stageRun(12, "rest", { message: "stage rest goes on", counts }),
        ],
        { skipped: { count: 2, from: "a", to: "b" } },
      ),
      targets: [...failing, ...away],
      lines: "some",
      now,
    });
    expect(text).toBe(
      `shop-12   main@sha1:9f2c1ab   from main@sha1:77d01c3   trigger: plan   plan c0   2 skipped before it
started 07:45:00Z, 22m ago
Rolling: stage rest goes on

  STAGE     CLUSTERS  DONE                             FAILED  UNREACH  CHANGING  STATE
  1 canary  120       120 ████████████████████ 100%    0       0        0         passed 2026-11-19 09:30:00Z
  2 rest    9,880     3,848 ███████░░░░░░░░░░░░░  38%  29      3        487       updating
  total     10,000    3,968                            29      3        487       waiting 5,500 · rendering 13 · unchanged 20

  PROBLEMS (32 of 10,000)                                                                      CLUSTERS
  DeadlineExceeded         DaemonSet agent/agent: Pod agent-7d9f6b5c4-x1000: ImagePullBackOff  29
  ConnectTimeout           no answer from d0                                                   3
  worst: c0 c1 c2 +29     starling rollout status shop -n payments --number 12 --state failed --all
`,
    );
  });

  test("the status marks empty stages, waiting stages, and stages that a newer rollout superseded", () => {
    const canary = stageRun(12, "canary", { ...passed });
    const toCome = [stageOf(canary), stage("early", { members: 3, current: 11 }), stage("rest", { current: 11 })];
    const waiting = formatRolloutStatus({
      rollout: rollout([canary], { stages: toCome }),
      targets: [],
      lines: "some",
      now,
    });
    expect(waiting).toContain("\nWaiting: stage early takes it next\n");
    expect(waiting).toMatch(/1 canary +0 .* empty\n/);
    expect(waiting).toMatch(/2 early +3 .* waiting\n/);
    expect(waiting).toMatch(/3 rest +0 .* empty\n/);
    const over = stageRun(12, "rest", {
      phase: "Superseded",
      message: "rollout 13 replaced it",
      supersededBy: 13,
      counts: { Superseded: 2 },
      endedAt: "2026-11-20T08:02:00.000Z",
    });
    const stages = [{ ...stageOf(canary), current: 13 }, stage("rest", { members: 2, current: 11 })];
    const superseded = formatRolloutStatus({
      rollout: rollout([canary, over], { stages }),
      targets: [],
      lines: "some",
      now,
    });
    expect(superseded).toContain("ended 08:02:00Z\nSuperseded: rollout 13 replaced it\n");
    expect(superseded).toMatch(/2 rest +2 .* superseded by 13\n/);
  });

  test.each([
    ["NothingVerified", "nothing verified"],
    ["TooManyUnreachable", "too many unreachable"],
  ] as const)("the status says that a rollout is stalled, and why: %s", (phase, words) => {
    const given = rollout([stageRun(12, "all", { phase, message: "why", counts: { Unreachable: 1 } })]);
    const text = formatRolloutStatus({ rollout: given, targets: [], lines: "some", now });
    expect(text).toContain("\nStalled: why\n");
    expect(text).toMatch(new RegExp(`1 all +1 .* ${words}\\n`));
  });

  test("the status is one line of progress when the output is not a terminal", () => {
    const given = rollout([
      stageRun(12, "canary", { ...passed, counts: { Succeeded: 1 } }),
      stageRun(12, "rest", { counts: { Assigned: 1, Failed: 1 } }),
    ]);
    expect(formatProgress(given, now)).toBe("08:07:00Z shop-12 Rolling: canary 1/1, rest 0/2, 1 changing, 1 failed");
  });
});
