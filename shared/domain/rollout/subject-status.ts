/** The status half of a SyncGroup or Sync, from its open or newest rollout. */
import type { DesiredPlan } from "#shared/domain/rollout/plan.ts";
import {
  type Condition,
  newestAct,
  type SubjectRow,
  type SubjectState,
  type SubjectStatus,
} from "#shared/domain/rows/object-rows.ts";
import type { RolloutRow, TargetState } from "#shared/domain/rows/rollout-rows.ts";

export interface StatusFacts {
  readonly now: Date;
  readonly rollout?: RolloutRow;
  /** Why there is nothing to plan, when there is not. */
  readonly waiting?: Extract<DesiredPlan, { ok: false }>;
  /** Clusters by the state of their Syncs, when no rollout is open. */
  readonly settled?: SubjectStatus["clusters"];
}

export function subjectStatus(row: SubjectRow, facts: StatusFacts): SubjectStatus {
  const { rollout, now } = facts;
  const state = stateOf(row, facts);
  const operation = newestAct(row.operations);
  const clusters = rollout === undefined ? (facts.settled ?? row.status.clusters) : clustersOf(rollout);
  return {
    observedGeneration: row.generation,
    ...(operation === undefined ? {} : { observedOperation: operation }),
    ...pick(rollout?.revision ?? row.status.revision, "revision"),
    ...pick(rollout?.number ?? row.status.rollout, "rollout"),
    state,
    ...(clusters === undefined ? {} : { clusters }),
    asOf: now.toISOString(),
    conditions: [readyCondition(row, facts, { state, clusters, now })],
  };
}

function pick<K extends string, V>(value: V | undefined, key: K): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: V });
}

function stateOf(row: SubjectRow, facts: StatusFacts): SubjectState {
  if (row.operations.suspended !== undefined) return "Suspended";
  if (row.operations.deletion !== undefined) return "Deleting";
  if (facts.waiting !== undefined) return "Waiting";
  const phase = facts.rollout?.phase;
  if (phase === undefined || phase === "Complete") return "Complete";
  if (phase === "Halted") return "Halted";
  return facts.rollout?.reason === "TooManyUnreachable" ? "Stalled" : "Rolling";
}

/** A rollout moves a part of the selection; clusters it does not name are where the last one left them. */
function clustersOf(rollout: RolloutRow): NonNullable<SubjectStatus["clusters"]> {
  const sum = (...states: readonly TargetState[]) =>
    rollout.stages.reduce((total, stage) => total + states.reduce((part, state) => part + stage.counts[state], 0), 0);
  const untouched = Math.max(0, rollout.selected - (rollout.size - sum("Skipped")));
  return {
    selected: rollout.selected,
    ready: sum("Succeeded", "Unchanged") + untouched,
    changing: sum("Assigned", "Applying", "Verifying"),
    failed: sum("Failed"),
    unreachable: sum("Unreachable"),
    waiting: sum("Waiting", "Rendering", "Superseded"),
  };
}

interface Assessed {
  readonly state: SubjectState;
  readonly clusters: SubjectStatus["clusters"];
  readonly now: Date;
}

function readyCondition(row: SubjectRow, facts: StatusFacts, assessed: Assessed): Condition {
  const { state, clusters, now } = assessed;
  const complete = state === "Complete" && clusters !== undefined && clusters.ready === clusters.selected;
  const counts = clusters === undefined ? "" : `${clusters.ready} of ${clusters.selected} clusters ready`;
  const message = facts.waiting?.message ?? (state === "Halted" ? (facts.rollout?.message ?? "") : counts);
  const condition = {
    type: "Ready",
    status: complete ? ("True" as const) : ("False" as const),
    reason: facts.waiting?.reason ?? (complete ? "AllClustersReady" : state === "Complete" ? "Degraded" : state),
    message,
  };
  const before = row.status.conditions.find((other) => other.type === "Ready");
  const since = before?.status === condition.status ? before.since : now.toISOString();
  return { ...condition, since };
}
