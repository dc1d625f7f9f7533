import { describe, expect, test } from "vitest";
import { formatProgress, formatRolloutStatus } from "#cli/format/rollout-status.ts";
import { type RolloutObject, rolloutObject, type TargetItem } from "#shared/fleet/api/objects.ts";
import { type RolloutRow, type TargetState, targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutRow } from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-20T08:07:00Z");

function counts(given: Partial<Record<TargetState, number>>) {
  return Object.fromEntries(targetStates.map((state) => [state, given[state] ?? 0])) as Record<TargetState, number>;
}

function rollout(change: Partial<RolloutRow> = {}): RolloutObject {
  return rolloutObject({ ...rolloutRow(12, ["Succeeded", "Waiting"]), fromRevision: "main@sha1:77d01c3", ...change });
}

function target(cluster: string, state: TargetState, change: Partial<TargetItem> = {}): TargetItem {
  return { cluster, order: Number(/\d+/.exec(cluster)?.[0] ?? 0), stage: "rest", state, reason: "", ...change };
}

describe("rollout status", () => {
  test("shows a small rollout cluster by cluster, worst first, with the done ones together", () => {
    const text = formatRolloutStatus({
      rollout: rollout({
        phase: "Halted",
        reason: "TooManyFailures",
        message: "1 cluster failed in stage rest",
        size: 5,
        selected: 5,
        stages: [
          {
            name: "canary",
            size: 1,
            first: 0,
            last: 0,
            cursor: 1,
            counts: counts({ Succeeded: 1 }),
            endedAt: "2026-11-20T08:01:02.000Z",
          },
          {
            name: "rest",
            size: 4,
            first: 1,
            last: 4,
            cursor: 3,
            counts: counts({ Succeeded: 1, Failed: 1, Waiting: 1, Verifying: 1 }),
          },
        ],
      }),
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
started 07:45:00Z, 22m ago · max 2 at once, failures 1/0, unreachable 0/0
Halted: 1 cluster failed in stage rest

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
        mend the source and push: the next revision starts a new rollout
`);
  });

  test("shows a large one as counts and reasons", () => {
    const failing = Array.from({ length: 29 }, (_, index) =>
      target(`c${index}`, "Failed", {
        reason: `DeadlineExceeded: DaemonSet agent/agent: Pod agent-7d9f6b5c4-x${1000 + index}: ImagePullBackOff`,
      }),
    );
    const away = Array.from({ length: 3 }, (_, index) =>
      target(`d${index}`, "Unreachable", { reason: `ConnectTimeout: no answer from d${index}` }),
    );
    const text = formatRolloutStatus({
      rollout: rollout({
        reason: "Rolling",
        size: 10_000,
        selected: 10_000,
        strategy: { ...rolloutRow(1, []).strategy, maxConcurrent: "5%", maxFailures: "1%", maxUnreachable: 300 },
        stages: [
          {
            name: "canary",
            size: 120,
            first: 0,
            last: 119,
            cursor: 120,
            counts: counts({ Succeeded: 100, Unchanged: 20 }),
            endedAt: "2026-11-19T09:30:00.000Z",
          },
          {
            name: "rest",
            size: 9880,
            first: 120,
            last: 9999,
            cursor: 4000,
            counts: counts({
              Succeeded: 3848,
              Failed: 29,
              Unreachable: 3,
              Applying: 400,
              Verifying: 87,
              Waiting: 5513,
            }),
          },
        ],
      }),
      targets: [...failing, ...away],
      lines: "some",
      now,
    });
    expect(text).toBe(
      `shop-12   main@sha1:9f2c1ab   from main@sha1:77d01c3   trigger: plan   plan c0
started 07:45:00Z, 22m ago · max 500 at once, failures 29/100, unreachable 3/300
Running: Rolling

  STAGE     CLUSTERS  DONE                             FAILED  UNREACH  CHANGING  STATE
  1 canary  120       120 ████████████████████ 100%    0       0        0         passed 2026-11-19 09:30:00Z
  2 rest    9,880     3,848 ███████░░░░░░░░░░░░░  38%  29      3        487       rolling
  total     10,000    3,968                            29      3        487       waiting 5,513 · unchanged 20

  WHY NOT (32 of 10,000)                                                                      CLUSTERS
  DeadlineExceeded        DaemonSet agent/agent: Pod agent-7d9f6b5c4-x1000: ImagePullBackOff  29
  ConnectTimeout          no answer from d0                                                   3
  worst: c0 c1 c2 … +29     starling rollout status shop -n payments --state failed --all
`,
    );
  });

  test("says what is empty, planning or waiting", () => {
    const stage = { first: 0, last: -1, cursor: 0 };
    const planning = rollout({
      phase: "Planning",
      size: 0,
      stage: 0,
      stages: [
        { ...stage, name: "none", size: 0, counts: counts({}) },
        { ...stage, name: "all", size: 3, counts: counts({ Waiting: 3 }) },
      ],
    });
    const text = formatRolloutStatus({ rollout: planning, targets: [], lines: "some", now });
    expect(text).toMatch(/1 none +0 .* empty\n/);
    expect(text).toMatch(/2 all +3 .* planning\n/);
  });

  test("has one line of progress where nothing can be redrawn", () => {
    expect(formatProgress(rollout(), now)).toBe(
      "08:07:00Z shop-12 Running: canary 1/1, rest 0/1, 0 changing, 0 failed",
    );
  });
});
