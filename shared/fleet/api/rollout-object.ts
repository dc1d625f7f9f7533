/** Rollouts and their targets in the API's form. */
import { defined } from "#shared/base/defined.ts";
import {
  isDone,
  type RolloutObject,
  type RolloutStage,
  type RolloutStatus,
  type TargetItem,
} from "#shared/fleet/api/objects.ts";
import { type RolloutPhase, rolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { reasonOf } from "#shared/fleet/rollout/judge.ts";
import { rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import { noTargets } from "#shared/fleet/rollout/stage-runs.ts";
import { freezeText } from "#shared/fleet/rows/freezes-row.ts";
import type {
  RolloutRow,
  RolloutStateRow,
  StageRecord,
  StageRunRow,
  TargetRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { holdOf, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

export interface RolloutInProgress {
  readonly rollout: RolloutRow;
  /** Stages of the rollout state, in order. */
  readonly stages: readonly StageRecord[];
  /** Rejected rollouts of the owner. */
  readonly rejected?: RolloutStateRow["rejected"];
  /** All stage runs of the rollout, including those with older snapshots. */
  readonly stageRuns: readonly StageRunRow[];
}

export function rolloutObject({ rollout, stages, rejected, stageRuns }: RolloutInProgress): RolloutObject {
  const { owner, number, revision, trigger, plan, skipped, fromRevision, rollback, takesBack, asked, createdAt } =
    rollout;
  const newest = newestStageRuns(stageRuns, stages);
  const phase = rolloutPhase(number, stages, newest, rejectionOf(defined({ rejected }), number));
  const shown = [...newest.map(stageRunStage), ...stagesAhead(rollout, stages, { newest, phase: phase.phase })];
  const versions = stageRuns.reduce((sum, { version }) => sum + version, rollout.version);
  return {
    apiVersion: ourApiVersion,
    kind: "Rollout",
    metadata: {
      name: `${owner.name}-${number}`,
      namespace: owner.namespace,
      uid: `${owner.kind}/${owner.name}/${number}`,
      resourceVersion: String(versions),
      creationTimestamp: createdAt,
    },
    spec: { owner, number, revision, trigger, plan, ...defined({ fromRevision, skipped, rollback, takesBack, asked }) },
    status: {
      ...phase,
      size: shown.reduce((sum, { size }) => sum + size, 0),
      stages: shown,
      ...endOf(phase.phase, newest),
      failures: newest.flatMap(({ stage, failures }) => failures.map((failure) => ({ stage, ...failure }))),
      transitions: newest
        .flatMap(({ stage, transitions }) => transitions.map((transition) => ({ stage, ...transition })))
        .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)),
    },
  };
}

/**
 * For each stage the stage run with the newest snapshot, in the rollout's order: removed stages first, then the present
 * ones.
 */
export function newestStageRuns(
  stageRuns: readonly StageRunRow[],
  stages: readonly Pick<StageRecord, "name">[],
): readonly StageRunRow[] {
  const newest = new Map<string, StageRunRow>();
  for (const stageRun of stageRuns)
    if (stageRun.snapshot >= (newest.get(stageRun.stage)?.snapshot ?? 0)) newest.set(stageRun.stage, stageRun);
  const place = ({ stage }: StageRunRow) => stages.findIndex(({ name }) => name === stage);
  return [...newest.values()].sort((a, b) => place(a) - place(b) || (a.startedAt < b.startedAt ? -1 : 1));
}

function stageRunStage(stageRun: StageRunRow): RolloutStage {
  const { stage: name, size, counts, phase, snapshot, reason, message, preexistingFailures, startedAt } = stageRun;
  const { endedAt, supersededBy } = stageRun;
  return {
    name,
    size,
    counts,
    phase,
    snapshot,
    reason,
    message,
    preexistingFailures,
    startedAt,
    ...defined({ endedAt, supersededBy }),
  };
}

/** Stages after the last one that it has reached, while it may go on. */
function stagesAhead(
  { number }: RolloutRow,
  stages: readonly StageRecord[],
  { newest, phase }: { readonly newest: readonly StageRunRow[]; readonly phase: RolloutPhase },
): readonly RolloutStage[] {
  if (isOver(phase)) return [];
  const reached = stages.findLastIndex(
    ({ name, current }) => current === number || newest.some(({ stage }) => stage === name),
  );
  return stages.slice(reached + 1).map(({ name, members }) => ({
    name,
    phase: "Waiting",
    size: members,
    counts: { ...noTargets, Waiting: members },
  }));
}

function isOver(phase: RolloutPhase): boolean {
  return phase === "Complete" || phase === "RolledBack" || phase === "Superseded" || phase === "Rejected";
}

function endOf(phase: RolloutPhase, newest: readonly StageRunRow[]): Pick<RolloutStatus, "endedAt" | "supersededBy"> {
  if (!isOver(phase)) return {};
  const last = newest.findLast(({ endedAt }) => endedAt !== undefined);
  const supersededBy = phase === "Superseded" ? last?.supersededBy : undefined;
  return defined({ endedAt: last?.endedAt, supersededBy });
}

/** The known facts about one target. */
export interface FoundTarget extends Pick<TargetRow, "cluster" | "order" | "state" | "reason" | "attempts"> {
  readonly stage: string;
  readonly assignedAt?: string;
  readonly endedAt?: string;
  readonly preexisting?: true;
}

/** @param syncs - the owner's Syncs on this cluster, for what runs there. */
export function targetItem(target: FoundTarget, syncs: readonly SyncRow[]): TargetItem {
  const { cluster, order, stage, state, reason, attempts, assignedAt, endedAt, preexisting } = target;
  const behind = syncs.find((sync) => sync.observed?.phase !== "Ready") ?? syncs[0];
  const revision = behind?.observed?.applied?.revision;
  const assigned = syncs.filter((sync) => attempts[sync.name] === sync.desired.attempt);
  const held = assigned.map(holdOf).find((one) => one !== undefined);
  const tried = state === "Applying" ? assigned.find(isRetrying) : undefined;
  const troubled = tried ?? assigned.find((sync) => sync.observed?.phase !== "Ready") ?? assigned[0];
  const why = tried?.observed === undefined ? reason : reasonOf(tried.observed);
  return {
    cluster,
    order,
    stage,
    state,
    reason: held === undefined || isDone(state) ? why : freezeText(held),
    ...(tried === undefined || held !== undefined ? {} : { retrying: true as const }),
    ...defined({ revision, assignedAt, endedAt, preexisting, sync: troubled?.name }),
  };
}

/** Whether the newest assignment is being tried again. */
function isRetrying({ desired, observed }: SyncRow): boolean {
  return observed?.attempt === desired.attempt && observed.phase === "Retrying";
}
