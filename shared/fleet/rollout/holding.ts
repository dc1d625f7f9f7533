/** Holds of targets and catch-ups, besides a slot: the causes, and the lists of held clusters. Pure. */

import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { exemptionInForce, windowsLeft } from "#shared/fleet/rollout/exemption.ts";
import type { Deciding, Known } from "#shared/fleet/rollout/facts.ts";
import { ownRoom } from "#shared/fleet/rollout/slots.ts";
import { catchUpBudget, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonOf, isCordoning } from "#shared/fleet/rows/cordons-row.ts";
import { freezeOver, isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { Exemption, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpsHeld, Hold, HoldCause, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { windowOver } from "#shared/fleet/rows/windows-row.ts";
import { isOpen, nextClosing, standingOf } from "#shared/fleet/windows/calendar.ts";

/**
 * A digest of the cordons, the freezes, the windows, the members and the skips: while it is the same, cordons, freezes and
 * windows hold the same clusters back.
 */
export function frozenAs({ known, now }: Pick<Deciding, "known" | "now">): string {
  const inForce = known.freezeState.freezes.filter((freeze) => isInForce(freeze, now));
  const left = windowsLeft(known.windows, exemptionInForce(known.row, now));
  const windows = left.map((window) => [window, standingOf(window, now)]);
  const cordoned = known.cordons.filter((cordon) => isCordoning(cordon, now)).map(({ cluster }) => cluster);
  const acts = (known.row.operations.gates ?? []).filter(({ verb }) => verb === "skip").map(({ number }) => number);
  return digestOf([
    inForce,
    known.rolloutState.membersVersion,
    ...(windows.length === 0 ? [] : [windows]),
    ...(cordoned.length === 0 ? [] : [{ cordoned }]),
    ...(acts.length === 0 ? [] : [{ acts }]),
  ]);
}

/**
 * Why a catch-up gets no slot now: a cause that holds it back; `asked`, when this call has requested its rendering; or
 * `others`, for every reason that is not counted as a hold.
 */
export type CatchUpWait = Pick<Hold, "cause" | "name"> | "asked" | "others";

/** True when as many clusters change in the stage as its own `maxConcurrent` allows. */
export function isFull(
  { rolloutState, known }: Pick<Deciding, "rolloutState" | "known">,
  name: string,
  size?: number,
): boolean {
  const stage = rolloutState.stages.find((one) => one.name === name);
  const own = relationOf(known.row).rollout.stages.find((one) => one.name === name)?.maxConcurrent;
  return stage !== undefined && ownRoom(stage, own, size) <= 0;
}

export function isEachStopped(known: Known): boolean {
  return known.rolloutState.stages.every((stage) => isStopped(known, stage));
}

/** Waiting catch-ups that are not tried before somebody asks, or a rollout passes their stage. */
export function stoppedCatchUps(deciding: Deciding): number {
  const { known } = deciding;
  const { stages, catchUps, catchUpsHeld } = known.rolloutState;
  if (isEachStopped(known)) return catchUps.waiting;
  const isAny = stages.some((stage) => isStopped(known, stage));
  if (!isAny || catchUpsHeld === undefined || catchUpsHeld.as !== heldAs(deciding)) return 0;
  return catchUpsHeld.holds.reduce((left, { clusters }) => left - clusters, catchUps.waiting);
}

/** @param as - see `CatchUpsHeld`. */
export function heldOf(waits: readonly CatchUpWait[], as: string): CatchUpsHeld {
  const held = waits.flatMap((wait): readonly Pick<Hold, "cause" | "name">[] => {
    if (wait === "others") return [];
    return [wait === "asked" ? { cause: "rendering" } : wait];
  });
  const groups = Map.groupBy(held, ({ cause, name = "" }) => `${cause} ${name}`);
  const holds = [...groups].sort().flatMap(([_key, group]): readonly Hold<number>[] => {
    const [first] = group;
    if (first === undefined) return [];
    return [{ cause: first.cause, clusters: group.length, ...defined({ name: first.name }) }];
  });
  return { holds, ...(countHeld({ holds }, "worker") === 0 ? { as } : {}) };
}

/** A digest that is the same while freezes and stages hold the same catch-ups back. */
export function heldAs(deciding: Deciding): string {
  const { known, rolloutState } = deciding;
  const { stages, unreadable = [], rejected = [] } = rolloutState;
  const isBound = ({ name }: StageRecord) => isFull({ known, rolloutState }, name);
  const taking = stages.map((stage) => [stage.name, stage.current ?? 0, isStopped(known, stage), isBound(stage)]);
  return digestOf([frozenAs(deciding), taking, unreadable, ...rejected.map(({ rollout }) => rollout)]);
}

/**
 * True when more catch-ups failed than the stage allows: no other is tried before a rollout passes the stage, or
 * somebody runs `reconcile`.
 */
export function isStopped({ row }: Known, { failedCatchUps, members }: StageRecord): boolean {
  return failedCatchUps > catchUpBudget(relationOf(row).rollout, members);
}

interface Thawing extends Pick<Known, "cordons" | "freezeState" | "windows"> {
  readonly row: Pick<OwnerRow, "operations">;
  /** The rollout, or its stage run, is a rollback. */
  readonly rollback?: number | true | undefined;
}

/**
 * The first of these that holds a cluster back: its cordon, a freeze, closed windows. The deletion of an owner waits for
 * freezes alone, and a rollback for no window.
 */
export function thawHold(
  facts: Thawing,
  cluster: SelectableCluster,
  now: Date,
): Pick<Hold, "cause" | "name"> | undefined {
  const { cordons, freezeState, row } = facts;
  const isGoing = row.operations.deletion !== undefined;
  if (!isGoing && cordonOf(cordons, cluster.name, now) !== undefined) return { cause: "cordon", name: cluster.name };
  const freeze = freezeOver(freezeState, cluster.labels, now);
  if (freeze !== undefined) return { cause: "freeze", name: freeze.name };
  const exemption = exemptionInForce(row, now);
  const window = windowFor(facts, cluster, exemption);
  return window === undefined || isOpen(window, now) ? undefined : { cause: "window", name: window.name };
}

/**
 * Workers begin what is assigned now only before this time: the next closing of the windows over the cluster. When an
 * exemption ends, the windows that it opened may be closed.
 */
export function beginBefore(
  facts: Omit<Thawing, "cordons" | "freezeState">,
  cluster: SelectableCluster,
  now: Date,
): string | undefined {
  const closing = (at: Date, exemption?: Exemption) => {
    const window = windowFor(facts, cluster, exemption);
    return window && nextClosing(window, at)?.toISOString();
  };
  const exemption = exemptionInForce(facts.row, now);
  if (exemption === undefined) return closing(now);
  const first = closing(now, exemption);
  return first !== undefined && first < exemption.until ? first : closing(new Date(exemption.until));
}

/** A deletion or a rollback waits for no window. */
function windowFor(
  { windows, row, rollback }: Omit<Thawing, "cordons" | "freezeState">,
  cluster: SelectableCluster,
  exemption: Exemption | undefined,
) {
  if (row.operations.deletion !== undefined || rollback !== undefined) return undefined;
  return windowOver(windowsLeft(windows, exemption), cluster);
}

/** True for a cause that depends on cordons, freezes, windows and labels alone: `letThaw` releases its targets. */
export function waitsForThaw({ cause }: Pick<Hold, "cause">): boolean {
  return cause === "cordon" || cause === "freeze" || cause === "window";
}

/** The names with which a cause holds targets or catch-ups back: of windows, or of cordoned clusters. */
export function namesHolding(
  { rolloutState, stageRuns }: Pick<Known, "rolloutState" | "stageRuns">,
  by: "cordon" | "window",
): ReadonlySet<string> {
  const runs = stageRunsIn(rolloutState, stageRuns).flatMap(({ holds }) => holds);
  const catchUps = rolloutState.catchUps.waiting === 0 ? [] : (rolloutState.catchUpsHeld?.holds ?? []);
  const names = [...runs, ...catchUps].flatMap(({ cause, name }) => (cause === by ? (name ?? []) : []));
  return new Set(names);
}

/** Orders of the targets that wait for an uncordon, for a thaw, or for a window. */
export function frozenIn({ holds }: Pick<StageRunRow, "holds">): readonly number[] {
  return holds.flatMap((hold) => (waitsForThaw(hold) ? hold.clusters : []));
}

/** Orders of the targets that a cause holds back, the one that waits longest first. */
export function heldIn({ holds }: Pick<StageRunRow, "holds">, cause: HoldCause): readonly number[] {
  return holds.flatMap((hold) => (hold.cause === cause ? hold.clusters : []));
}

/** One more target is held back. */
export function withHeld(
  holds: readonly Hold[],
  { cause, name }: Pick<Hold, "cause" | "name">,
  order: number,
): readonly Hold[] {
  const isSame = (hold: Hold) => hold.cause === cause && hold.name === name;
  if (!holds.some(isSame)) return [...holds, { cause, clusters: [order], ...defined({ name }) }];
  return holds.map((hold) => (isSame(hold) ? { ...hold, clusters: [...hold.clusters, order] } : hold));
}

/** The target is held back no longer. */
export function withoutHeld(holds: readonly Hold[], order: number): readonly Hold[] {
  return holds.flatMap((hold) => {
    const clusters = hold.clusters.filter((other) => other !== order);
    return clusters.length === 0 ? [] : [{ ...hold, clusters }];
  });
}

/** Number of catch-ups that a cause holds back. */
export function countHeld({ holds }: Pick<CatchUpsHeld, "holds">, cause: HoldCause): number {
  return holds.reduce((sum, hold) => sum + (hold.cause === cause ? hold.clusters : 0), 0);
}
