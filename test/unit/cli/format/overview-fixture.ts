import { defined } from "#shared/base/defined.ts";
import type { TargetItem } from "#shared/fleet/api/objects.ts";
import { type RolloutOverview, rolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { noTargets, refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestAct, type SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord, StageRunRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { WaitFacts } from "#shared/fleet/waits/wait.ts";
import { rolloutStateRow, stageRunRow } from "#test/unit/functions/api/row-fixture.ts";

export const now = new Date("2026-11-20T08:07:00Z");

const revisions: Readonly<Record<number, string>> = {
  117: "main@sha1:77d01c3ffffffffffffffffffffffffffffffffff",
  118: "main@sha1:4be8a90ffffffffffffffffffffffffffffffffff",
  119: "main@sha1:9f2c1abffffffffffffffffffffffffffffffffff",
};
const times: Readonly<Record<number, string>> = {
  117: "2026-11-19T17:00:00.000Z",
  118: "2026-11-20T07:40:00.000Z",
  119: "2026-11-20T08:03:00.000Z",
};

export function groupRow(change: Partial<SyncGroupRow> = {}): SyncGroupRow {
  return {
    ...keys.object("payments", "SyncGroup", "shop"),
    type: "SyncGroup",
    schema: 1,
    version: 7,
    uid: "uid-of-the-owner",
    namespace: "payments",
    name: "shop",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-01T08:00:00.000Z",
    spec: syncGroupSpec.parse({
      clusters: { all: true },
      templates: [{ name: "web", source: "app" }],
      rollout: {
        maxConcurrent: 2,
        maxUnreachable: "10%",
        stages: [
          { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } },
          { name: "early", clusters: { selector: { matchLabels: { ring: "early" } } } },
          { name: "rest" },
        ],
      },
    }),
    operations: {},
    status: { state: "Rolling", conditions: [] },
    ...change,
  };
}

/** @returns a stage run with this number of targets in each state. */
export function stageRun(
  rollout: number,
  stage: string,
  {
    counts = {},
    ...change
  }: Partial<Omit<StageRunRow, "counts">> & { readonly counts?: Partial<Record<TargetState, number>> },
): StageRunRow {
  const all = { ...noTargets, ...counts };
  const size = Object.values(all).reduce((sum, count) => sum + count, 0);
  return { ...stageRunRow({ rollout, stage }, []), phase: "Updating", counts: all, size, ...change };
}

interface Given {
  readonly stageRuns: readonly StageRunRow[];
  readonly stages: readonly StageRecord[];
  readonly row?: SyncGroupRow;
  readonly rolloutState?: Partial<RolloutStateRow>;
  readonly facts?: Partial<WaitFacts>;
}

/** The planner has handled every operation, unless the row or the rollout state says otherwise. */
export function factsOf({
  stageRuns,
  stages,
  row: given = groupRow(),
  rolloutState = {},
  facts = {},
}: Given): WaitFacts {
  const { operations } = given;
  const seen = { observedGeneration: given.generation, ...defined({ observedOperation: newestAct(operations) }) };
  const row = { ...given, status: { ...seen, ...given.status } };
  const handled = defined({
    handledReconcile: operations.reconcile?.number,
    handledRefresh: operations.refresh?.number,
  });
  const made = rolloutStateRow(stages, { ...handled, ...rolloutState });
  const ledger = made.ledger.map((entry) => ({
    ...entry,
    revision: revisions[entry.number] ?? entry.revision,
    at: times[entry.number] ?? entry.at,
  }));
  return {
    now,
    row,
    rolloutState: { ...made, ledger },
    stageRuns: new Map(stageRuns.map((one) => [stageRunKey(one), one])),
    freezeState: { ok: true, freezeState: { freezes: [], lifted: [] } },
    windows: [],
    cordons: [],
    slots: [],
    syncs: new Map(),
    leases: new Map(),
    failedCatchUps: [],
    ...facts,
  };
}

export function overview(given: Given): RolloutOverview {
  return rolloutOverview(factsOf(given));
}

export function stage(name: string, change: Partial<StageRecord>): StageRecord {
  return { name, members: 0, changing: 0, failedCatchUps: 0, ...change };
}

export function target(cluster: string, state: TargetState, change: Partial<TargetItem> = {}): TargetItem {
  return { cluster, order: Number(/\d+/.exec(cluster)?.[0] ?? 0), stage: "rest", state, reason: "", ...change };
}

/** The current rollout of canary is 119; early has 117 and is updating to 118; rest has 117. */
export function threeRollouts(
  sizes: Readonly<Record<"canary" | "early" | "rest", number>>,
  early: Partial<Record<TargetState, number>>,
) {
  const passed = { phase: "Passed", reason: "Passed", message: "" } as const;
  const onCanary = stageRun(119, "canary", {
    ...passed,
    counts: { Succeeded: sizes.canary },
    endedAt: "2026-11-20T08:05:30.000Z",
  });
  const through = stageRun(118, "early", { counts: early, startedAt: "2026-11-20T07:58:00.000Z" });
  const before = stageRun(117, "early", {
    ...passed,
    counts: { Succeeded: sizes.early },
    endedAt: "2026-11-19T17:20:00.000Z",
  });
  const onRest = stageRun(117, "rest", {
    ...passed,
    counts: { Succeeded: sizes.rest },
    endedAt: "2026-11-19T18:00:00.000Z",
  });
  return {
    stageRuns: [onCanary, through, before, onRest],
    stages: [
      stage("canary", { members: sizes.canary, current: 119, passed: refOf(onCanary) }),
      stage("early", {
        members: sizes.early,
        current: 117,
        passed: refOf(before),
        updatingTo: refOf(through),
        changing: early.Assigned ?? 0,
      }),
      stage("rest", { members: sizes.rest, current: 117, passed: refOf(onRest) }),
    ],
  };
}
