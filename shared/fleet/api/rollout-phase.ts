/** The phase of a rollout, from its stage runs and the stages' current rollouts: pure. */

import { nextStageOf } from "#shared/fleet/rollout/order.ts";
import { rejectedText } from "#shared/fleet/rollout/rejection.ts";
import { isSameStageRun, isStalled } from "#shared/fleet/rollout/stage-runs.ts";
import type { RejectedRollout, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type AnyReason, reportedReason } from "#shared/kube/reasons.ts";

/**
 * - `Rolling`: it goes through a stage; `Halted`, `Stalled`: it stands still in one;
 * - `Waiting`: it is in progress in no stage, and a stage will take it;
 * - `Complete`: the last stage passed it;
 * - `RollingBack`, `RolledBack`: it is a rollback, which goes to its stages at once, or has ended there;
 * - `Rejected`: somebody rejected it, or a rollout with its plan;
 * - `Superseded`: it is in progress in no stage, and no stage may take it any more.
 */
export const rolloutPhases = [
  "Halted",
  "Stalled",
  "Rolling",
  "RollingBack",
  "Waiting",
  "Complete",
  "RolledBack",
  "Superseded",
  "Rejected",
] as const;
export type RolloutPhase = (typeof rolloutPhases)[number];

export interface PhaseOfRollout {
  readonly phase: RolloutPhase;
  readonly reason: RolloutPhase | AnyReason;
  readonly message: string;
}

type Stage = Pick<StageRecord, "name" | "current" | "updatingTo">;

/**
 * @param stages - stages of the rollout state, in order.
 * @param stageRuns - stage runs of the rollout, for each stage the one with the newest snapshot.
 * @param rejection - present when it is rejected.
 */
export function rolloutPhase(
  rollout: number,
  stages: readonly Stage[],
  stageRuns: readonly StageRunRow[],
  rejection?: RejectedRollout,
): PhaseOfRollout {
  if (rejection !== undefined) return { phase: "Rejected", reason: "Rejected", message: rejectedText(rejection) };
  const updatingTo = stageRuns.filter((stageRun) => stages.some((stage) => isSameStageRun(stage.updatingTo, stageRun)));
  const stalled = updatingTo.filter(isStalled);
  const worst = stalled.find(({ phase }) => phase === "Halted") ?? stalled[0] ?? updatingTo[0];
  if (worst !== undefined) {
    const { reason, message, rollback } = worst;
    const going = rollback === true ? "RollingBack" : "Rolling";
    return {
      phase: worst.phase === "Halted" ? "Halted" : isStalled(worst) ? "Stalled" : going,
      reason: reportedReason(reason),
      message,
    };
  }
  const back = stageRuns.filter((stageRun) => stageRun.rollback === true && stageRun.phase === "Passed");
  if (back.length > 0)
    return { phase: "RolledBack", reason: "RolledBack", message: back.map(({ message }) => message).join("; ") };
  const last = stages.at(-1);
  const passed = stageRuns.find(({ stage, phase }) => stage === last?.name && phase === "Passed");
  if (passed !== undefined || (last?.current === rollout && rollout > 0))
    return { phase: "Complete", reason: "Complete", message: passed?.message ?? "" };
  const next = nextStageOf(rollout, stages);
  if (next !== undefined) return { phase: "Waiting", reason: "Waiting", message: waitingText(next) };
  const ended = stageRuns.find(({ phase }) => phase === "Superseded");
  const past = stages.find(({ name }) => !stageRuns.some(({ stage, phase }) => stage === name && phase === "Passed"));
  const message = ended?.message ?? (past === undefined ? "" : `stage ${past.name} takes a newer rollout instead`);
  return { phase: "Superseded", reason: "Newer", message };
}

function waitingText({ name, updatingTo }: Stage): string {
  return updatingTo === undefined
    ? `stage ${name} takes it next`
    : `stage ${name} takes it when rollout ${updatingTo.rollout} has ended there`;
}
