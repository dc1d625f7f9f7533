/** A rollout going through one stage: its progress, whether it may continue, and when it has passed. Pure. */
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { Act } from "#shared/fleet/rows/object-rows.ts";
import {
  isEndedPhase,
  isStalledPhase,
  type RolloutStateRow,
  type StageRecord,
  type StageRunPhase,
  type StageRunRef,
  type StageRunRow,
  type TargetRow,
  type TargetState,
  targetStates,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** Settings that are read each time, so that a change helps at once. */
export type StagePace = Pick<RolloutStrategy, "maxConcurrent" | "maxFailures" | "maxUnreachable">;

/** Why a stage run is in its phase: the phase itself, or a more exact word. */
export type StageRunReason = StageRunPhase | Among<"TooManyFailures" | "DeletionFailed" | "StageRemoved" | "Newer">;

/** Number of transitions and failures in a stage run's row. */
const keptTransitions = 20;

const keptFailures = 10;

/** Length of each of their messages: a worker's message may have 2 KB. */
const keptText = 300;

/** Number of clusters that one planner manages at once. */
const mostSlots = 500;

export const noTargets = Object.fromEntries(targetStates.map((state) => [state, 0])) as Record<TargetState, number>;

export function stageRunKey({ rollout, stage, snapshot }: StageRunRef): string {
  return `${rollout}#${stage}#${snapshot}`;
}

export function refOf({ rollout, stage, snapshot }: StageRunRef): StageRunRef {
  return { rollout, stage, snapshot };
}

export function isSameStageRun(a: StageRunRef | undefined, b: StageRunRef | undefined): boolean {
  return a !== undefined && b !== undefined && stageRunKey(a) === stageRunKey(b);
}

export function isStalled({ phase }: Pick<StageRunRow, "phase">): boolean {
  return isStalledPhase(phase);
}

export function hasEnded({ phase }: Pick<StageRunRow, "phase">): boolean {
  return isEndedPhase(phase);
}

/** Targets that this rollout changes: the snapshot without those that had it already and those that left. */
export function changedSize(stageRun: Pick<StageRunRow, "size" | "counts" | "takenOut">): number {
  return stageRun.size - stageRun.counts.Unchanged - leftOf(stageRun);
}

/** Skipped targets that left their stage: people took none of them out. */
export function leftOf({ counts, takenOut }: Pick<StageRunRow, "counts" | "takenOut">): number {
  return counts.Skipped - (takenOut?.count ?? 0);
}

/** Failed targets that count against the budget. */
export function failuresOf({
  counts,
  preexistingFailures,
}: Pick<StageRunRow, "counts" | "preexistingFailures">): number {
  return counts.Failed - preexistingFailures;
}

/** Targets that wait, for a slot or for something before it. */
export function waitingOf({ counts }: Pick<StageRunRow, "counts">): number {
  return counts.Waiting + counts.Rendering;
}

/** True when nothing was assigned for it yet. */
export function isUnbegun({ counts }: Pick<StageRunRow, "counts">): boolean {
  return counts.Assigned + counts.Succeeded + counts.Failed + counts.Unreachable === 0;
}

/** Clusters of the group that may change at once. */
export function boundOf({ maxConcurrent }: StagePace, members: number): number {
  return Math.min(mostSlots, Math.max(1, resolveCount(maxConcurrent, members)));
}

/**
 * Failed catch-ups that a stage may have while others still catch up in it. It is at least one, so that one bad cluster
 * stops no other. A catch-up that could not be rendered says nothing about the rollout, and is not counted.
 */
export function catchUpBudget({ maxFailures }: Pick<StagePace, "maxFailures">, members: number): number {
  return Math.max(1, resolveCount(maxFailures, members));
}

/**
 * The row names the first failed targets, and the last unreachable ones. A failure that counts against the budget comes
 * before every preexisting one. @param stageRun - with the target in its counts.
 */
export function withOutcome(
  stageRun: StageRunRow,
  {
    cluster,
    state,
    reason,
    preexisting,
    takenOut,
    at,
  }: Pick<TargetRow, "cluster" | "state" | "reason"> & {
    readonly preexisting?: true | undefined;
    readonly takenOut?: true | undefined;
    readonly at: string;
  },
): StageRunRow {
  if (takenOut === true) {
    const { count, first } = stageRun.takenOut ?? { count: 0, first: [] };
    const one = { cluster, reason: excerpt(reason, keptText), at };
    return { ...stageRun, takenOut: { count: count + 1, first: [...first, one].slice(0, keptFailures) } };
  }
  if (state === "Unreachable") return { ...stageRun, away: [...stageRun.away, cluster].slice(-keptFailures) };
  if (state !== "Failed") return stageRun;
  const failure = { cluster, reason: excerpt(reason, keptText), ...defined({ preexisting }) };
  const counted = stageRun.failures.filter((one) => one.preexisting !== true);
  const others = stageRun.failures.filter((one) => one.preexisting === true);
  const failures = preexisting === true ? [...counted, ...others, failure] : [...counted, failure, ...others];
  return {
    ...stageRun,
    failures: failures.slice(0, keptFailures),
    preexistingFailures: stageRun.preexistingFailures + (preexisting === true ? 1 : 0),
  };
}

/** The result of a target no longer holds. */
export function withoutOutcome(stageRun: StageRunRow, target: TargetRow): StageRunRow {
  const { cluster, order, state, preexisting } = target;
  const wasPreexisting = state === "Failed" && preexisting === true;
  const { takenOut, ...others } = stageRun;
  const left = takenOut?.first.filter((one) => one.cluster !== cluster) ?? [];
  const count = (takenOut?.count ?? 0) - (target.takenOut === true ? 1 : 0);
  return {
    ...others,
    ...(count > 0 ? { takenOut: { count, first: left } } : {}),
    away: stageRun.away.filter((name) => name !== cluster),
    failures: stageRun.failures.filter((failure) => failure.cluster !== cluster),
    preexistingFailures: stageRun.preexistingFailures - (wasPreexisting ? 1 : 0),
    unrendered: stageRun.unrendered.filter((other) => other !== order),
  };
}

/** The stage run with another phase; the change is reported once. */
export function withVerdict(
  stageRun: StageRunRow,
  { phase, reason, message }: Pick<StageRunRow, "phase" | "message"> & { readonly reason: StageRunReason },
  at: string,
): StageRunRow {
  if (stageRun.phase === phase && stageRun.reason === reason && (phase === "Updating" || stageRun.message === message))
    return stageRun;
  return {
    ...stageRun,
    phase,
    reason,
    message,
    ...(hasEnded({ phase }) ? { endedAt: at } : {}),
    transitions: [...stageRun.transitions, { at, phase, reason, message: excerpt(message, keptText) }].slice(
      -keptTransitions,
    ),
  };
}

export interface Supersession {
  /** The rollout that replaced the stage run; undefined when its stage was removed. */
  readonly by: number | undefined;
  /** The request for a new snapshot. */
  readonly refresh?: Act;
}

/**
 * A superseded stage run: what waited never gets a turn, and no stage run counts its changing clusters until another
 * adopts them.
 */
export function superseded(stageRun: StageRunRow, { by, refresh }: Supersession, at: string): StageRunRow {
  const { Waiting, Rendering, Assigned, Superseded } = stageRun.counts;
  const counts = {
    ...stageRun.counts,
    Waiting: 0,
    Rendering: 0,
    Assigned: 0,
    Superseded: Superseded + Waiting + Rendering + Assigned,
  };
  const reported =
    by === stageRun.rollout
      ? `a new snapshot replaced this stage run in ${stageRun.stage}${refreshText(refresh)}`
      : `rollout ${by} replaced it`;
  const [reason, message]: readonly [StageRunReason, string] =
    by === undefined ? ["StageRemoved", "its stage was removed"] : ["Newer", reported];
  const ended = withVerdict({ ...stageRun, counts }, { phase: "Superseded", reason, message }, at);
  const { frozenAs: _frozen, ...kept } = ended;
  return { ...kept, holds: [], returned: [], unrendered: [], ...defined({ supersededBy: by }) };
}

function refreshText(refresh: Act | undefined): string {
  if (refresh === undefined) return "";
  return `, because of a refresh by ${refresh.by}${refresh.reason === undefined ? "" : `: ${refresh.reason}`}`;
}

/** @param stageRuns - the rows, or something else about stage runs; by `stageRunKey`. */
export function stageRunOf<Run>(
  { updatingTo }: Pick<StageRecord, "updatingTo">,
  stageRuns: ReadonlyMap<string, Run>,
): Run | undefined {
  return updatingTo === undefined ? undefined : stageRuns.get(stageRunKey(updatingTo));
}

/** The stage runs in progress, in the order of stages. */
export function stageRunsIn<Run>(
  { stages }: Pick<RolloutStateRow, "stages">,
  stageRuns: ReadonlyMap<string, Run>,
): readonly Run[] {
  return stages.flatMap((stage) => stageRunOf(stage, stageRuns) ?? []);
}

/** The last stage runs of each stage that people took targets out of. */
export function takenOutOf(
  { stages }: Pick<RolloutStateRow, "stages">,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): readonly (StageRunRow & Required<Pick<StageRunRow, "takenOut">>)[] {
  return stages.flatMap((stage) => {
    const stageRun = lastStageRunOf(stage, stageRuns);
    return stageRun?.takenOut === undefined ? [] : [{ ...stageRun, takenOut: stageRun.takenOut }];
  });
}

/** The stage run in progress, otherwise the one that passed last. */
export function lastStageRunOf(
  { updatingTo, passed }: StageRecord,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): StageRunRow | undefined {
  const ref = updatingTo ?? passed;
  return ref === undefined ? undefined : stageRuns.get(stageRunKey(ref));
}
