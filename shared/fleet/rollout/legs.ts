/** A content going through one stage: how far it is, whether it may go on, and when it has passed. Pure. */

import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import {
  type LegPhase,
  type LegRef,
  type LegRow,
  stalledPhases,
  type TargetRow,
  type TargetState,
  targetStates,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** Read live: changing it helps at once. */
export type Pace = Pick<RolloutStrategy, "maxConcurrent" | "maxFailures" | "maxUnreachable">;

/** Of a leg: its phase, where that says all. */
type LegReason = LegPhase | Among<"TooManyFailures" | "DeletionFailed" | "StageRemoved" | "Newer">;

export interface LegVerdict {
  readonly phase: Exclude<LegPhase, "Superseded">;
  readonly reason: LegReason;
  readonly message: string;
}

/** A leg keeps so many transitions and failures in its row. */
const keptTransitions = 20;
const keptFailures = 10;
/** And so much of what each says: a worker's words may be 2 KB long. */
const keptText = 300;
/** What one planner looks after at once. */
const mostSlots = 500;

export const noTargets = Object.fromEntries(targetStates.map((state) => [state, 0])) as Record<TargetState, number>;

export function legKey({ content, stage, seal }: LegRef): string {
  return `${content}#${stage}#${seal}`;
}

export function refOf({ content, stage, seal }: LegRef): LegRef {
  return { content, stage, seal };
}

export function isSameLeg(a: LegRef | undefined, b: LegRef | undefined): boolean {
  return a !== undefined && b !== undefined && legKey(a) === legKey(b);
}

export function isStalled({ phase }: Pick<LegRow, "phase">): boolean {
  return stalledPhases.some((stalled) => stalled === phase);
}

/** Targets that this content changes: sealed, less those that had it already and those that left. */
export function changedSize({ size, counts }: Pick<LegRow, "size" | "counts">): number {
  return size - counts.Unchanged - counts.Skipped;
}

/** Failed targets that count. */
export function failuresOf({ counts, preexistingFailures }: Pick<LegRow, "counts" | "preexistingFailures">): number {
  return counts.Failed - preexistingFailures;
}

/** Targets that wait, for a slot or for whatever comes before that. */
export function waitingOf({ counts }: Pick<LegRow, "counts">): number {
  return counts.Waiting + counts.Rendering;
}

/** Orders of those that a freeze holds. */
export function frozenIn({ frozen }: Pick<LegRow, "frozen">): readonly number[] {
  return Object.values(frozen?.by ?? {}).flat();
}

/** True when nothing was assigned for it yet. */
export function isUnbegun({ counts }: Pick<LegRow, "counts">): boolean {
  return counts.Assigned + counts.Succeeded + counts.Failed + counts.Unreachable === 0;
}

/** Clusters of the group that may be changing at once. */
export function boundOf({ maxConcurrent }: Pace, members: number): number {
  return Math.min(mostSlots, Math.max(1, resolveCount(maxConcurrent, members)));
}

/**
 * Failed catch-ups that a stage bears before it lets no other cluster catch up. One is always free, so that one bad joiner stops
 * nobody. A catch-up that could not be rendered says nothing about the rollout, and is not counted.
 */
export function catchUpBudget({ maxFailures }: Pick<Pace, "maxFailures">, members: number): number {
  return Math.max(1, resolveCount(maxFailures, members));
}

/** What else decides about a leg. */
export interface Judged {
  /** It deletes: it needs no evidence, and leaves nobody behind. */
  readonly farewell?: boolean;
  /** Its stage has to verify a rollout on a cluster: see `mustVerify`. */
  readonly mustVerify?: boolean;
}

/** The first stage verifies on a cluster, unless it says that it is optional. @param name - of the stage. */
export function mustVerify({ stages }: Pick<RolloutStrategy, "stages">, name: string): boolean {
  const [first] = stages;
  return first?.name === name && first.optional !== true;
}

/** All targets that the leg was to change have left. Nobody verified anything: clusters that joined since may. */
export function isLeft(leg: LegRow, judged: Judged = {}): boolean {
  if (leg.size === 0) return judged.mustVerify === true;
  return changedSize(leg) === 0 && (leg.counts.Skipped > 0 || leg.left === true);
}

/**
 * Where a leg stands. Percentages are of what it changes; while not all of that is known, of what it may change.
 * Leaving is no evidence: a leg whose targets have all left has verified nothing.
 */
export function verdictOf(leg: LegRow, pace: Pace, judged: Judged = {}): LegVerdict {
  const { farewell = false } = judged;
  const changed = changedSize(leg);
  // Who was sick before keeps its objects, too.
  const failures = farewell ? leg.counts.Failed : failuresOf(leg);
  const isOver = waitingOf(leg) + leg.counts.Assigned === 0;
  const budget = farewell ? 0 : resolveCount(pace.maxFailures, changed);
  if (failures > budget && (isOver || !farewell)) {
    const word = failures === 1 ? "cluster" : "clusters";
    const [first] = leg.failures;
    const why = first === undefined ? "" : `: ${first.cluster}: ${first.reason}`;
    const message = `${failures} ${word} failed of ${changed} in stage ${leg.stage} (allows ${budget})${why}`;
    return { phase: "Halted", reason: farewell ? "DeletionFailed" : "TooManyFailures", message };
  }
  if (!isOver) return { phase: "Moving", reason: "Moving", message: `stage ${leg.stage} goes on` };
  const away = leg.counts.Unreachable;
  const allowed = farewell ? 0 : resolveCount(pace.maxUnreachable, changed, "up");
  if (away > allowed) {
    const message = `${away} of ${changed} unreachable in stage ${leg.stage} (allows ${allowed})`;
    return { phase: "TooManyUnreachable", reason: "TooManyUnreachable", message };
  }
  if (!farewell && ((changed > 0 && leg.counts.Succeeded === 0) || isLeft(leg, judged)))
    return { phase: "NothingVerified", reason: "NothingVerified", message: nothingVerified(leg) };
  return { phase: "Passed", reason: "Passed", message: passedText(leg) };
}

function nothingVerified({ size, stage, counts, preexistingFailures, ...leg }: LegRow): string {
  if (size === 0)
    return `no cluster matches stage ${stage}; register one there, or set optional: true on the stage to pass without`;
  if (size === counts.Unchanged + counts.Skipped) {
    const left = counts.Skipped === 0 ? "clusters" : counts.Skipped === 1 ? "1 cluster" : `${counts.Skipped} clusters`;
    const when = leg.left === true ? " before it was verified, or before this snapshot" : " before it was verified";
    return `nothing verified in stage ${stage}: ${left} left${when}`;
  }
  const parts = [
    counts.Unreachable === 0 ? "" : `${counts.Unreachable} Unreachable`,
    counts.Failed === 0 ? "" : `${counts.Failed} Failed`,
    preexistingFailures === 0 ? "" : `${preexistingFailures} of them not ready before`,
  ];
  return `nothing verified in stage ${stage}: ${parts.filter((part) => part !== "").join(", ")}`;
}

function passedText({ size, stage, counts }: LegRow): string {
  if (size === 0) return `stage ${stage} is empty: passed at once`;
  const parts = (["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped"] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${state.toLowerCase()}`);
  return `stage ${stage} passed: ${parts.join(", ")}`;
}

/**
 * The row names the first targets that failed, and the last that do not answer. A failure that counts against the budget stands
 * before every preexisting one. @param leg - counts it already.
 */
export function withOutcome(
  leg: LegRow,
  {
    cluster,
    state,
    reason,
    preexisting,
  }: Pick<TargetRow, "cluster" | "state" | "reason"> & {
    readonly preexisting?: true | undefined;
  },
): LegRow {
  if (state === "Unreachable") return { ...leg, away: [...leg.away, cluster].slice(-keptFailures) };
  if (state !== "Failed") return leg;
  const failure = { cluster, reason: excerpt(reason, keptText), ...defined({ preexisting }) };
  const counted = leg.failures.filter((one) => one.preexisting !== true);
  const others = leg.failures.filter((one) => one.preexisting === true);
  const failures = preexisting === true ? [...counted, ...others, failure] : [...counted, failure, ...others];
  return {
    ...leg,
    failures: failures.slice(0, keptFailures),
    preexistingFailures: leg.preexistingFailures + (preexisting === true ? 1 : 0),
  };
}

/** What became of a target holds no longer. */
export function withoutOutcome(leg: LegRow, { cluster, order, state, preexisting }: TargetRow): LegRow {
  const wasPreexisting = state === "Failed" && preexisting === true;
  return {
    ...leg,
    away: leg.away.filter((name) => name !== cluster),
    failures: leg.failures.filter((failure) => failure.cluster !== cluster),
    preexistingFailures: leg.preexistingFailures - (wasPreexisting ? 1 : 0),
    unrendered: leg.unrendered.filter((other) => other !== order),
  };
}

/** The leg with another standing, told once. */
export function withVerdict(leg: LegRow, verdict: Omit<LegVerdict, "phase"> & { phase: LegPhase }, at: string): LegRow {
  const { phase, reason, message } = verdict;
  if (leg.phase === phase && leg.reason === reason && (phase === "Moving" || leg.message === message)) return leg;
  const isEnd = phase === "Passed" || phase === "Superseded";
  return {
    ...leg,
    phase,
    reason,
    message,
    ...(isEnd ? { endedAt: at } : {}),
    transitions: [...leg.transitions, { at, phase, reason, message: excerpt(message, keptText) }].slice(
      -keptTransitions,
    ),
  };
}

/**
 * It gave way: what waited never gets a turn, and what is changing is counted by no leg until another adopts it.
 * @param by - the content that took its place; undefined: its stage was removed.
 */
export function superseded(leg: LegRow, by: number | undefined, at: string): LegRow {
  const { Waiting, Rendering, Assigned, Superseded } = leg.counts;
  const counts = {
    ...leg.counts,
    Waiting: 0,
    Rendering: 0,
    Assigned: 0,
    Superseded: Superseded + Waiting + Rendering + Assigned,
  };
  const told = by === leg.content ? "sealed anew" : `content ${by} took over`;
  const [reason, message]: readonly [LegReason, string] =
    by === undefined ? ["StageRemoved", "its stage was removed"] : ["Newer", told];
  const ended = withVerdict({ ...leg, counts }, { phase: "Superseded", reason, message }, at);
  const { frozen: _frozen, ...kept } = ended;
  return { ...kept, rendering: [], aside: [], returned: [], unrendered: [], ...defined({ supersededBy: by }) };
}
