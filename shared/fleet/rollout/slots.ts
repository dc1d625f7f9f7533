/** Who gets slots: never more than the bound over all legs, one of them kept so that a cure never waits for the sick. */
import { defined } from "#shared/base/defined.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { boundOf, type Pace, waitingOf } from "#shared/fleet/rollout/legs.ts";
import type { ArrivalCounts, LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";

/** Those of every stage, and the arrivals. */
const keptServed = 13;
const unbounded = Number.MAX_SAFE_INTEGER;

/** Whoever wants slots: a leg, or the arrivals. */
export interface Mover {
  /** Index of the leg's stage; undefined for the arrivals. */
  readonly stage?: number;
  readonly leg?: LegRow;
  /** A stage's own bound. */
  readonly maxConcurrent?: Pace["maxConcurrent"] | undefined;
}

export interface Turn {
  readonly mover: Mover;
  /** New slots that it may have; with none it may still go on in those that its clusters have. */
  readonly slots: number;
}

export interface Movable {
  readonly unit: Pick<UnitRow, "stages" | "arrivals" | "last">;
  readonly legs: ReadonlyMap<string, LegRow>;
  readonly rollout: Pick<RolloutStrategy, "stages">;
  /** It is being deleted: nobody is taken to anything but that. */
  readonly isGoing: boolean;
}

/** The legs that may go on and have somebody waiting, and the arrivals. */
export function moversOf({ unit, legs, rollout, isGoing }: Movable): readonly Mover[] {
  const movers: Mover[] = [];
  for (const [stage, named] of unit.stages.entries()) {
    const leg = legOf(named, legs);
    if (leg === undefined || leg.phase !== "Moving" || named.ahead === true || waitingOf(leg) === 0) continue;
    // A subject that goes gives nothing more to anybody: its farewell is the newest content.
    if (isGoing && leg.content !== unit.last) continue;
    const { maxConcurrent } = rollout.stages.find(({ name }) => name === named.name) ?? {};
    movers.push({ stage, leg, ...defined({ maxConcurrent }) });
  }
  return unit.arrivals.waiting > 0 && !isGoing ? [...movers, {}] : movers;
}

export function changingOf(unit: Pick<UnitRow, "stages" | "arrivals">): number {
  return unit.stages.reduce((sum, { changing }) => sum + changing, unit.arrivals.changing);
}

/** Something changes, or a leg may go on. */
export function isMoving({ unit, legs }: Pick<Movable, "unit" | "legs">): boolean {
  const mayGoOn = (stage: UnitStage) => stage.ahead !== true && legOf(stage, legs)?.phase === "Moving";
  return changingOf(unit) > 0 || unit.stages.some(mayGoOn);
}

export function membersOfAll({ stages }: Pick<UnitRow, "stages">): number {
  return stages.reduce((sum, { members }) => sum + members, 0);
}

/** Counts that are others by so much; a row that was counted may be gone. */
export function arrivalsAfter(
  { waiting, changing, failed, away = 0 }: ArrivalCounts,
  change: Partial<ArrivalCounts>,
): ArrivalCounts {
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
function nameOf({ leg }: Mover): string {
  return leg?.stage ?? "";
}

/** Who was given slots last is its last. Whom it does not name had none for longer. */
export function servedNext({ served = [] }: Pick<UnitRow, "served">, mover: Mover): readonly string[] {
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
export function turnsOf(unit: UnitRow, movers: readonly Mover[], pace: Pace): readonly Turn[] {
  const bound = boundOf(pace, membersOfAll(unit));
  const first = Math.max(
    0,
    unit.stages.findIndex(({ members }) => members > 0),
  );
  const firstChanging = unit.stages.slice(0, first + 1).reduce((sum, { changing }) => sum + changing, 0);
  const free = Math.max(0, bound - changingOf(unit));
  const freeOfOthers = bound === 1 ? free : Math.max(0, Math.min(free, bound - 1 - (changingOf(unit) - firstChanging)));
  const isFirst = ({ stage }: Mover) => stage !== undefined && stage <= first;
  const { served = [] } = unit;
  const ordered = movers.toSorted((a, b) => served.indexOf(nameOf(a)) - served.indexOf(nameOf(b)));
  const earliest = Math.min(...movers.map(({ stage = Number.POSITIVE_INFINITY }) => stage));
  const isCure = (mover: Mover) => mover.stage === earliest && unit.stages[earliest]?.changing === 0;
  return ordered.map((mover) => {
    const share = Math.ceil((isFirst(mover) ? free : freeOfOthers) / Math.max(1, movers.length));
    const slots = isCure(mover) ? Math.max(share, Math.min(free, 1)) : share;
    return { mover, slots: Math.max(0, Math.min(slots, roomOf(mover, unit))) };
  });
}

function roomOf({ maxConcurrent, leg, stage }: Mover, { stages }: UnitRow): number {
  const named = stage === undefined ? undefined : stages[stage];
  return named === undefined || leg === undefined ? unbounded : ownRoom(named, maxConcurrent, leg.size);
}

/** Slots that a stage's own bound leaves in it. @param size - what a percentage is of: a leg's targets, or its members. */
export function ownRoom(stage: UnitStage, own: Pace["maxConcurrent"] | undefined, size = stage.members): number {
  return own === undefined ? unbounded : ownBound(own, size) - changingIn(stage);
}

export function ownBound(own: Pace["maxConcurrent"], size: number): number {
  return Math.max(1, resolveCount(own, size));
}

/** Targets, and clusters that came to it. */
export function changingIn({ changing, arriving = 0 }: UnitStage): number {
  return changing + arriving;
}
