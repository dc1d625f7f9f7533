/** `onFailure: rollback`: which failures take a rollout back from its stage by themselves, and to which one. Pure. */

import { excerpt } from "#shared/base/excerpt.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { prunedClusters } from "#shared/fleet/rollout/guarded-objects.ts";
import { backFrom } from "#shared/fleet/rollout/order.ts";
import { changedSize, failuresOf, type StagePace, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The principal of what Starling does without a person. */
export const starling = "Starling";

/** Present when failed rollouts go back by themselves. */
export interface GoesBack {
  /** The rollout that the stage goes back to; absent without one. */
  readonly to?: number | undefined;
  /** Number of clusters on which a guard withholds what the rollout prunes. */
  readonly withheldOn: number;
}

/** @returns where the owner's spec sends a rollout that fails in a stage; undefined when it stands still there. */
export function goesBack(
  row: OwnerRow,
  rolloutState: RolloutStateRow,
  { name, updatingTo }: Pick<StageRecord, "name" | "updatingTo">,
): GoesBack | undefined {
  if (relationOf(row).rollout.onFailure !== "rollback" || row.operations.deletion !== undefined) return undefined;
  const { rollout = 0 } = updatingTo ?? {};
  return { to: backFrom(rolloutState, name, rollout), withheldOn: prunedClusters(rolloutState.guard, rollout) };
}

export type TakeBack = { readonly to: number } | { readonly stays: string };

/**
 * Whether a failed stage run is taken back, or why it stays; undefined when it has not failed, or is a rollback: that
 * never starts another one. Silence, renderings, prunes that a guard withholds, and failures from before it tell nothing
 * against a rollout.
 */
export function takeBack(stageRun: StageRunRow, back: GoesBack | undefined, pace: StagePace): TakeBack | undefined {
  const { phase, stage, rollback, expired, check, unrendered } = stageRun;
  if (back === undefined || rollback === true || expired === true) return undefined;
  if (phase !== "Halted" && phase !== "GateFailed") return undefined;
  if (phase === "GateFailed" && check?.answer === "silent")
    return { stays: "onFailure does not take it back, because nobody answered about it" };
  const budget = resolveCount(pace.maxFailures, changedSize(stageRun));
  const failures = failuresOf(stageRun) - unrendered.length;
  if (phase === "Halted" && failures <= budget)
    return { stays: "onFailure does not take it back, because manifests could not be rendered" };
  if (phase === "Halted" && failures - back.withheldOn <= budget)
    return { stays: "onFailure does not take it back, because the guard withholds what it prunes" };
  if (back.to === undefined) return { stays: `stage ${stage} has no earlier rollout to go back to` };
  return { to: back.to };
}

/** A stage run that is to be taken back now. */
export interface FailedRun {
  readonly stageRun: StageRunRow;
  readonly to: number;
}

/** @returns the first failed stage run that is to be taken back. */
export function failedRun(
  row: OwnerRow,
  rolloutState: RolloutStateRow,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): FailedRun | undefined {
  const { rollout: pace } = relationOf(row);
  for (const stage of rolloutState.stages) {
    const stageRun = stageRunOf(stage, stageRuns);
    const taken = stageRun && takeBack(stageRun, goesBack(row, rolloutState, stage), pace);
    if (stageRun !== undefined && taken !== undefined && "to" in taken) return { stageRun, to: taken.to };
  }
  return undefined;
}

/** Length of the reason in the rows of the rollback. */
const keptReason = 300;

export function failureText({ message }: Pick<StageRunRow, "message">): string {
  return excerpt(message, keptReason);
}

/** Both reasons of a rollback that failed as well. */
export function alsoFailed({ takesBack }: Pick<StageRunRow, "takesBack">, why: string): string {
  if (takesBack === undefined) return why;
  const { rollout, to, reason } = takesBack;
  return `rollout ${rollout}: ${reason}; the way back to rollout ${to} failed as well: ${why}`;
}
