/**
 * Distributes slots: never more than the bound over all stage runs, with one reserved for the first stage, so
 * that a fix never waits for unhealthy clusters.
 */
import { defined } from "#shared/base/defined.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { boundOf, type StagePace, stageRunOf, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { CatchUpCounts, RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** At most twelve stages, and the catch-ups. */
const keptServed = 13;
const unbounded = Number.MAX_SAFE_INTEGER;

/** A stage run or the catch-ups that need slots. */
export interface Mover {
  /** Index of the stage run's stage; undefined for the catch-ups. */
  readonly stage?: number;
  readonly stageRun?: StageRunRow;
  /** A stage's own bound. */
  readonly maxConcurrent?: StagePace["maxConcurrent"] | undefined;
}

export interface MoverTurn {
  readonly mover: Mover;
  /** Number of new slots that it may have; without any it may still continue in the slots of its clusters. */
  readonly slots: number;
}

export interface Movable {
  readonly rolloutState: Pick<RolloutStateRow, "stages" | "catchUps" | "last">;
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  readonly rollout: Pick<RolloutStrategy, "stages">;
  /** The owner is being deleted: clusters only get the deletion. */
  readonly isGoing: boolean;
}

/** Stage runs that may continue and have waiting targets, and the catch-ups. */
export function moversOf({ rolloutState, stageRuns, rollout, isGoing }: Movable): readonly Mover[] {
  const movers: Mover[] = [];
  for (const [stage, named] of rolloutState.stages.entries()) {
    const stageRun = stageRunOf(named, stageRuns);
    if (stageRun === undefined || stageRun.phase !== "Updating" || named.ahead === true || waitingOf(stageRun) === 0)
      continue;
    // An owner that is being deleted gives nothing else: its deletion is the newest rollout.
    if (isGoing && stageRun.rollout !== rolloutState.last) continue;
    const { maxConcurrent } = rollout.stages.find(({ name }) => name === named.name) ?? {};
    movers.push({ stage, stageRun, ...defined({ maxConcurrent }) });
  }
  return rolloutState.catchUps.waiting > 0 && !isGoing ? [...movers, {}] : movers;
}

export function changingOf(rolloutState: Pick<RolloutStateRow, "stages" | "catchUps">): number {
  return rolloutState.stages.reduce((sum, { changing }) => sum + changing, rolloutState.catchUps.changing);
}

export function membersOfAll({ stages }: Pick<RolloutStateRow, "stages">): number {
  return stages.reduce((sum, { members }) => sum + members, 0);
}

/** Counts with a change; a row that was counted may be gone. */
export function catchUpsAfter(
  { waiting, changing, failed, away = 0 }: CatchUpCounts,
  change: Partial<CatchUpCounts>,
): CatchUpCounts {
  const counted = (before: number, by = 0) => Math.max(0, before + by);
  const left = counted(away, change.away);
  return {
    waiting: counted(waiting, change.waiting),
    changing: counted(changing, change.changing),
    failed: counted(failed, change.failed),
    ...(left === 0 ? {} : { away: left }),
  };
}

/** The name as `served` has it. */
function nameOf({ stageRun }: Mover): string {
  return stageRun?.stage ?? "";
}

/** The last entry got slots last. An entry that is missing has waited longest. */
export function servedNext({ served = [] }: Pick<RolloutStateRow, "served">, mover: Mover): readonly string[] {
  const name = nameOf(mover);
  return [...served.filter((other) => other !== name), name].slice(-keptServed);
}

/**
 * Turns for all, the longest waiting first: in a circle, an entry that may have none at the moment would be skipped,
 * and would miss the next turn as well. Each may have an even share of the free slots. With a bound of two or more, all
 * but the first stage with clusters leave it one slot, which the earliest stage with work and without a slot may use
 * meanwhile. With a bound of one there are only turns: if the earliest always came first, commits that come faster than
 * it finishes would block all others.
 */
export function turnsOf(
  rolloutState: RolloutStateRow,
  movers: readonly Mover[],
  pace: StagePace,
): readonly MoverTurn[] {
  const bound = boundOf(pace, membersOfAll(rolloutState));
  const first = Math.max(
    0,
    rolloutState.stages.findIndex(({ members }) => members > 0),
  );
  const firstChanging = rolloutState.stages.slice(0, first + 1).reduce((sum, { changing }) => sum + changing, 0);
  const free = Math.max(0, bound - changingOf(rolloutState));
  const freeOfOthers =
    bound === 1 ? free : Math.max(0, Math.min(free, bound - 1 - (changingOf(rolloutState) - firstChanging)));
  const isFirst = ({ stage }: Mover) => stage !== undefined && stage <= first;
  const { served = [] } = rolloutState;
  const ordered = movers.toSorted((a, b) => served.indexOf(nameOf(a)) - served.indexOf(nameOf(b)));
  const earliest = Math.min(...movers.map(({ stage = Number.POSITIVE_INFINITY }) => stage));
  const isFix = (mover: Mover) => mover.stage === earliest && rolloutState.stages[earliest]?.changing === 0;
  return ordered.map((mover) => {
    const share = Math.ceil((isFirst(mover) ? free : freeOfOthers) / Math.max(1, movers.length));
    const slots = isFix(mover) ? Math.max(share, Math.min(free, 1)) : share;
    return { mover, slots: Math.max(0, Math.min(slots, roomOf(mover, rolloutState))) };
  });
}

function roomOf({ maxConcurrent, stageRun, stage }: Mover, { stages }: RolloutStateRow): number {
  const named = stage === undefined ? undefined : stages[stage];
  return named === undefined || stageRun === undefined ? unbounded : ownRoom(named, maxConcurrent, stageRun.size);
}

/**
 * Slots that a stage's own bound leaves. @param size - base of a percentage: a stage run's targets, or the stage's
 * members.
 */
export function ownRoom(stage: StageRecord, own: StagePace["maxConcurrent"] | undefined, size = stage.members): number {
  return own === undefined ? unbounded : ownBound(own, size) - changingIn(stage);
}

export function ownBound(own: StagePace["maxConcurrent"], size: number): number {
  return Math.max(1, resolveCount(own, size));
}

/** Targets, and clusters that joined the stage. */
export function changingIn({ changing, catchingUp = 0 }: StageRecord): number {
  return changing + catchingUp;
}
