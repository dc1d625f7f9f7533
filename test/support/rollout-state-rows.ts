import { noTargets } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const owner: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };
const at = "2026-11-21T08:00:00.000Z";

/** A stage run of rollout 1 in the stage `all`. Counts that are not given are 0. */
export function stageRunInState({
  counts,
  ...more
}: Omit<Partial<StageRunRow>, "counts"> & { readonly counts?: Partial<StageRunRow["counts"]> }): StageRunRow {
  const ref = { rollout: more.rollout ?? 1, stage: more.stage ?? "all", snapshot: more.snapshot ?? 0 };
  const all = { ...noTargets, ...counts };
  return {
    ...keys.stageRun(owner, ref),
    ...ref,
    type: "StageRun",
    schema: rowSchema,
    version: 1,
    owner,
    phase: "Updating",
    reason: "Updating",
    message: "",
    size: Object.values(all).reduce((sum, count) => sum + count, 0),
    pages: [],
    membersVersion: 1,
    next: 0,
    holds: [],
    returned: [],
    unrendered: [],
    preexistingFailures: 0,
    failures: [],
    away: [],
    startedAt: at,
    transitions: [],
    ...more,
    counts: all,
  };
}

export function stageRecordOf(name: string, more: Partial<StageRecord> = {}): StageRecord {
  return { name, members: 1, changing: 0, failedCatchUps: 0, ...more };
}

export function rolloutStateOf(stages: readonly StageRecord[], more: Partial<RolloutStateRow> = {}): RolloutStateRow {
  return {
    ...keys.rolloutState(owner),
    type: "RolloutState",
    schema: rowSchema,
    version: 1,
    owner,
    uid: "uid",
    last: 0,
    stages,
    catchUps: { waiting: 0, changing: 0, failed: 0 },
    ledger: [],
    templates: [],
    membersVersion: 1,
    inputsVersion: 0,
    jobs: [],
    snapshots: 0,
    ...more,
  };
}
