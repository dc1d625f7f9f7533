/** The causes that hold targets and catch-ups back, besides a slot. Pure. */

import { digestOf } from "#shared/base/digest.ts";
import type { Step } from "#shared/fleet/rollout/decide.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Deciding, Known } from "#shared/fleet/rollout/facts.ts";
import { ownRoom } from "#shared/fleet/rollout/slots.ts";
import { catchUpBudget } from "#shared/fleet/rollout/stage-runs.ts";
import { isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { CatchUpsHeld, StageRecord } from "#shared/fleet/rows/rollout-rows.ts";

/** Equal while the clusters that a freeze covers cannot have changed. */
export function frozenAs({ known, now }: Pick<Deciding, "known" | "now">): string {
  return digestOf([
    known.freezeState.freezes.filter((freeze) => isInForce(freeze, now)),
    known.rolloutState.membersVersion,
  ]);
}

/**
 * A catch-up waits for one of these: a freeze, by its name; its stage's own bound; a rendering, which this call may have
 * requested.
 */
export type CatchUpWait =
  | { readonly freeze: string }
  | { readonly bound: string }
  | "rendering"
  | "asked"
  | "turn"
  | "others";

/** As many clusters change in the stage as its own bound allows. */
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
  const { frozen, rendering, bound = {} } = catchUpsHeld;
  const waits = [rendering, ...Object.values(frozen), ...Object.values(bound)];
  return waits.reduce((left, count) => left - count, catchUps.waiting);
}

export function heldOf(waits: readonly CatchUpWait[], as: string): CatchUpsHeld {
  const frozen = countsOf(waits.flatMap((wait) => (typeof wait === "object" && "freeze" in wait ? wait.freeze : [])));
  const bound = countsOf(waits.flatMap((wait) => (typeof wait === "object" && "bound" in wait ? wait.bound : [])));
  const rendering = waits.filter((wait) => wait === "rendering" || wait === "asked").length;
  const worker = waits.filter((wait) => wait === "turn").length;
  const isBound = Object.keys(bound).length > 0;
  return { frozen, rendering, worker, ...(isBound ? { bound } : {}), ...(worker === 0 ? { as } : {}) };
}

function countsOf(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, { length }]) => [name, length]));
}

/** Equal while the same catch-ups are held by a freeze or by their stage. */
export function heldAs(deciding: Deciding): string {
  const { known, rolloutState } = deciding;
  const { stages, unreadable = [] } = rolloutState;
  const isBound = ({ name }: StageRecord) => isFull({ known, rolloutState }, name);
  const taking = stages.map((stage) => [stage.name, stage.current ?? 0, isStopped(known, stage), isBound(stage)]);
  return digestOf([frozenAs(deciding), taking, unreadable]);
}

export function waitOf(step: Step, stage: string): CatchUpWait | undefined {
  if (step.do === "wait" && step.requests.length > 0) return "asked";
  if (step.do === "wait") return step.for === "bound" ? { bound: stage } : step.for;
  if (step.do === "freeze") return { freeze: step.name };
  return step.do === "away" ? "others" : undefined;
}

/**
 * More catch-ups failed than the stage tolerates: no other is tried before a rollout passes the stage, or somebody
 * asks.
 */
export function isStopped({ row }: Known, { failedCatchUps, members }: StageRecord): boolean {
  return failedCatchUps > catchUpBudget(relationOf(row).rollout, members);
}
