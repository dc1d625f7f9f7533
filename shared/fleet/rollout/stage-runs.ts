/** A rollout going through one stage: its progress, whether it may continue, and when it has passed. Pure. */

import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import {
  type StageRunPhase,
  type StageRunRef,
  type StageRunRow,
  stalledPhases,
  type TargetRow,
  type TargetState,
  targetStates,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** Settings that are read each time, so that a change helps at once. */
export type StagePace = Pick<RolloutStrategy, "maxConcurrent" | "maxFailures" | "maxUnreachable">;

/** The phase of a stage run, when it tells everything. */
type StageRunReason = StageRunPhase | Among<"TooManyFailures" | "DeletionFailed" | "StageRemoved" | "Newer">;

export interface StageRunVerdict {
  readonly phase: Exclude<StageRunPhase, "Superseded">;
  readonly reason: StageRunReason;
  readonly message: string;
}

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
  return stalledPhases.some((stalled) => stalled === phase);
}

/** Targets that this rollout changes: the snapshot without those that had it already and those that left. */
export function changedSize({ size, counts }: Pick<StageRunRow, "size" | "counts">): number {
  return size - counts.Unchanged - counts.Skipped;
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

/** Orders of the targets that a freeze covers. */
export function frozenIn({ frozen }: Pick<StageRunRow, "frozen">): readonly number[] {
  return Object.values(frozen?.by ?? {}).flat();
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
 * Failed catch-ups that a stage bears before it lets no other cluster catch up. One is always free, so that one bad joiner stops
 * nobody. A catch-up that could not be rendered says nothing about the rollout, and is not counted.
 */
export function catchUpBudget({ maxFailures }: Pick<StagePace, "maxFailures">, members: number): number {
  return Math.max(1, resolveCount(maxFailures, members));
}

/** The other facts that decide about a stage run. */
export interface Judged {
  /** It deletes: it needs no evidence, and leaves no cluster behind. */
  readonly deletion?: boolean;
  /** Its stage has to verify a rollout on a cluster: see `mustVerify`. */
  readonly mustVerify?: boolean;
}

/** The first stage verifies on a cluster, unless it is optional. @param name - name of the stage. */
export function mustVerify({ stages }: Pick<RolloutStrategy, "stages">, name: string): boolean {
  const [first] = stages;
  return first?.name === name && first.optional !== true;
}

/**
 * All targets that the stage run was to change have left. Nothing was verified; clusters that joined since may verify
 * it.
 */
export function isLeft(stageRun: StageRunRow, judged: Judged = {}): boolean {
  if (stageRun.size === 0) return judged.mustVerify === true;
  return changedSize(stageRun) === 0 && (stageRun.counts.Skipped > 0 || stageRun.left === true);
}

/**
 * The verdict about a stage run. Percentages are of the targets that it changes; while some are unknown, of those that
 * it may change. Leaving is no evidence: a stage run whose targets have all left has verified nothing.
 */
export function verdictOf(stageRun: StageRunRow, pace: StagePace, judged: Judged = {}): StageRunVerdict {
  const { deletion = false } = judged;
  const changed = changedSize(stageRun);
  // A cluster that was unhealthy before keeps its objects as well.
  const failures = deletion ? stageRun.counts.Failed : failuresOf(stageRun);
  const isOver = waitingOf(stageRun) + stageRun.counts.Assigned === 0;
  const budget = deletion ? 0 : resolveCount(pace.maxFailures, changed);
  if (failures > budget && (isOver || !deletion)) {
    const [first] = stageRun.failures;
    const why = first === undefined ? "" : `: ${first.cluster}: ${first.reason}`;
    const message = `${failures} of ${clustersText(changed)} failed in stage ${stageRun.stage} (allowed: ${budget})${why}`;
    return { phase: "Halted", reason: deletion ? "DeletionFailed" : "TooManyFailures", message };
  }
  if (!isOver) return { phase: "Updating", reason: "Updating", message: `stage ${stageRun.stage} goes on` };
  const away = stageRun.counts.Unreachable;
  const allowed = deletion ? 0 : resolveCount(pace.maxUnreachable, changed, "up");
  if (away > allowed) {
    const message = `${away} of ${clustersText(changed)} unreachable in stage ${stageRun.stage} (allowed: ${allowed})`;
    return { phase: "TooManyUnreachable", reason: "TooManyUnreachable", message };
  }
  if (!deletion && ((changed > 0 && stageRun.counts.Succeeded === 0) || isLeft(stageRun, judged)))
    return { phase: "NothingVerified", reason: "NothingVerified", message: nothingVerified(stageRun) };
  return { phase: "Passed", reason: "Passed", message: passedText(stageRun) };
}

function clustersText(count: number): string {
  return count === 1 ? "1 cluster" : `${count} clusters`;
}

function nothingVerified({ size, stage, counts, preexistingFailures, ...stageRun }: StageRunRow): string {
  if (size === 0)
    return `no cluster matches stage ${stage}; register one there, or set optional: true on the stage to pass without`;
  if (size === counts.Unchanged + counts.Skipped) {
    const left = counts.Skipped === 0 ? "clusters" : counts.Skipped === 1 ? "1 cluster" : `${counts.Skipped} clusters`;
    const when =
      stageRun.left === true ? " before it was verified, or before this snapshot" : " before it was verified";
    return `nothing verified in stage ${stage}: ${left} left${when}`;
  }
  const parts = [
    counts.Unreachable === 0 ? "" : `${counts.Unreachable} Unreachable`,
    counts.Failed === 0 ? "" : `${counts.Failed} Failed`,
    preexistingFailures === 0 ? "" : `${preexistingFailures} of them not ready before`,
  ];
  return `nothing verified in stage ${stage}: ${parts.filter((part) => part !== "").join(", ")}`;
}

function passedText({ size, stage, counts }: StageRunRow): string {
  if (size === 0) return `stage ${stage} is empty: passed at once`;
  const parts = (["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped"] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${state.toLowerCase()}`);
  return `stage ${stage} passed: ${parts.join(", ")}`;
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
  }: Pick<TargetRow, "cluster" | "state" | "reason"> & {
    readonly preexisting?: true | undefined;
  },
): StageRunRow {
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
export function withoutOutcome(stageRun: StageRunRow, { cluster, order, state, preexisting }: TargetRow): StageRunRow {
  const wasPreexisting = state === "Failed" && preexisting === true;
  return {
    ...stageRun,
    away: stageRun.away.filter((name) => name !== cluster),
    failures: stageRun.failures.filter((failure) => failure.cluster !== cluster),
    preexistingFailures: stageRun.preexistingFailures - (wasPreexisting ? 1 : 0),
    unrendered: stageRun.unrendered.filter((other) => other !== order),
  };
}

/** The stage run with another phase; the change is reported once. */
export function withVerdict(
  stageRun: StageRunRow,
  verdict: Omit<StageRunVerdict, "phase"> & { phase: StageRunPhase },
  at: string,
): StageRunRow {
  const { phase, reason, message } = verdict;
  if (stageRun.phase === phase && stageRun.reason === reason && (phase === "Updating" || stageRun.message === message))
    return stageRun;
  const isEnd = phase === "Passed" || phase === "Superseded";
  return {
    ...stageRun,
    phase,
    reason,
    message,
    ...(isEnd ? { endedAt: at } : {}),
    transitions: [...stageRun.transitions, { at, phase, reason, message: excerpt(message, keptText) }].slice(
      -keptTransitions,
    ),
  };
}

/**
 * A superseded stage run: what waited never gets a turn, and no stage run counts its changing clusters until another
 * adopts them.
 * @param by - the rollout that replaced it; undefined when its stage was removed.
 */
export function superseded(stageRun: StageRunRow, by: number | undefined, at: string): StageRunRow {
  const { Waiting, Rendering, Assigned, Superseded } = stageRun.counts;
  const counts = {
    ...stageRun.counts,
    Waiting: 0,
    Rendering: 0,
    Assigned: 0,
    Superseded: Superseded + Waiting + Rendering + Assigned,
  };
  const reported = by === stageRun.rollout ? "a new snapshot was taken" : `rollout ${by} replaced it`;
  const [reason, message]: readonly [StageRunReason, string] =
    by === undefined ? ["StageRemoved", "its stage was removed"] : ["Newer", reported];
  const ended = withVerdict({ ...stageRun, counts }, { phase: "Superseded", reason, message }, at);
  const { frozen: _frozen, ...kept } = ended;
  return { ...kept, rendering: [], aside: [], returned: [], unrendered: [], ...defined({ supersededBy: by }) };
}
