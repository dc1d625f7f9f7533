/** Who gets slots: never more than the bound over all legs, one of them kept so that a cure never waits for the sick. */
import { defined } from "#shared/base/defined.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { stageRunOf } from "#shared/fleet/rollout/feed.ts";
import { boundOf, type StagePace, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { CatchUpCounts, RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Those of every stage, and the arrivals. */
const keptServed = 13;
const unbounded = Number.MAX_SAFE_INTEGER;

/** Whoever wants slots: a leg, or the arrivals. */
export interface Mover {
  /** Index of the leg's stage; undefined for the arrivals. */
  readonly stage?: number;
  readonly stageRun?: StageRunRow;
  /** A stage's own bound. */
  readonly maxConcurrent?: StagePace["maxConcurrent"] | undefined;
}

export interface MoverTurn {
  readonly mover: Mover;
  /** New slots that it may have; with none it may still go on in those that its clusters have. */
  readonly slots: number;
}

export interface Movable {
  readonly rolloutState: Pick<RolloutStateRow, "stages" | "catchUps" | "last">;
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  readonly rollout: Pick<RolloutStrategy, "stages">;
  /** It is being deleted: nobody is taken to anything but that. */
  readonly isGoing: boolean;
}

/** The legs that may go on and have somebody waiting, and the arrivals. */
export function moversOf({ rolloutState, stageRuns, rollout, isGoing }: Movable): readonly Mover[] {
  const movers: Mover[] = [];
  for (const [stage, named] of rolloutState.stages.entries()) {
    const stageRun = stageRunOf(named, stageRuns);
    if (stageRun === undefined || stageRun.phase !== "Updating" || named.ahead === true || waitingOf(stageRun) === 0)
      continue;
    // A subject that goes gives nothing more to anybody: its farewell is the newest content.
    if (isGoing && stageRun.rollout !== rolloutState.last) continue;
    const { maxConcurrent } = rollout.stages.find(({ name }) => name === named.name) ?? {};
    movers.push({ stage, stageRun, ...defined({ maxConcurrent }) });
  }
  return rolloutState.catchUps.waiting > 0 && !isGoing ? [...movers, {}] : movers;
}

export function changingOf(rolloutState: Pick<RolloutStateRow, "stages" | "catchUps">): number {
  return rolloutState.stages.reduce((sum, { changing }) => sum + changing, rolloutState.catchUps.changing);
}

/** Something changes, or a leg may go on. */
export function isMoving({ rolloutState, stageRuns }: Pick<Movable, "rolloutState" | "stageRuns">): boolean {
  const mayGoOn = (stage: StageRecord) => stage.ahead !== true && stageRunOf(stage, stageRuns)?.phase === "Updating";
  return changingOf(rolloutState) > 0 || rolloutState.stages.some(mayGoOn);
}

export function membersOfAll({ stages }: Pick<RolloutStateRow, "stages">): number {
  return stages.reduce((sum, { members }) => sum + members, 0);
}

/** Counts that are others by so much; a row that was counted may be gone. */
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

/** As `served` has it. */
function nameOf({ stageRun }: Mover): string {
  return stageRun?.stage ?? "";
}

/** Who was given slots last is its last. Whom it does not name had none for longer. */
export function servedNext({ served = [] }: Pick<RolloutStateRow, "served">, mover: Mover): readonly string[] {
  const name = nameOf(mover);
  return [...served.filter((other) => other !== name), name].slice(-keptServed);
}

/**
 * Everybody's turn, whoever had none for longest first: in a circle, those who may have none at the moment would be passed by,
 * and miss the next one, too. Each may have an even share of what is free. With a bound of two or more all but the first stage
 * that has clusters leave one slot to it, which the earliest that has something to do and holds none may have meanwhile. With
 * one there are only turns: were the earliest always first, commits that come faster than it is through would keep it from
 * everybody else.
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
  const isCure = (mover: Mover) => mover.stage === earliest && rolloutState.stages[earliest]?.changing === 0;
  return ordered.map((mover) => {
    const share = Math.ceil((isFirst(mover) ? free : freeOfOthers) / Math.max(1, movers.length));
    const slots = isCure(mover) ? Math.max(share, Math.min(free, 1)) : share;
    return { mover, slots: Math.max(0, Math.min(slots, roomOf(mover, rolloutState))) };
  });
}

function roomOf({ maxConcurrent, stageRun, stage }: Mover, { stages }: RolloutStateRow): number {
  const named = stage === undefined ? undefined : stages[stage];
  return named === undefined || stageRun === undefined ? unbounded : ownRoom(named, maxConcurrent, stageRun.size);
}

/** Slots that a stage's own bound leaves in it. @param size - what a percentage is of: a leg's targets, or its members. */
export function ownRoom(stage: StageRecord, own: StagePace["maxConcurrent"] | undefined, size = stage.members): number {
  return own === undefined ? unbounded : ownBound(own, size) - changingIn(stage);
}

export function ownBound(own: StagePace["maxConcurrent"], size: number): number {
  return Math.max(1, resolveCount(own, size));
}

/** Targets, and clusters that came to it. */
export function changingIn({ changing, catchingUp = 0 }: StageRecord): number {
  return changing + catchingUp;
}
