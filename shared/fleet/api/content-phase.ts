/** Where a content is on its way through the stages: said of its legs and of what the stages are on. Pure. */

import { isSameLeg, isStalled } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { type AnyReason, toldReason } from "#shared/kube/reasons.ts";

/**
 * - `Rolling`: it goes through a stage; `Halted`, `Stalled`: it stands still in one;
 * - `Waiting`: a stage is still to take it, and none goes through with it now;
 * - `Complete`: the last stage passed it;
 * - `Superseded`: no stage goes through with it, or may take it any more.
 */
export const rolloutPhases = ["Halted", "Stalled", "Rolling", "Waiting", "Complete", "Superseded"] as const;
export type RolloutPhase = (typeof rolloutPhases)[number];

export interface ContentPhase {
  readonly phase: RolloutPhase;
  readonly reason: RolloutPhase | AnyReason;
  readonly message: string;
}

type Stage = Pick<UnitStage, "name" | "on" | "moving">;

/**
 * @param stages - of the unit, in their order.
 * @param legs - of the content, of each stage the one that was sealed last.
 */
export function contentPhase(content: number, stages: readonly Stage[], legs: readonly LegRow[]): ContentPhase {
  const moving = legs.filter((leg) => stages.some((stage) => isSameLeg(stage.moving, leg)));
  const stalled = moving.filter(isStalled);
  const worst = stalled.find(({ phase }) => phase === "Halted") ?? stalled[0] ?? moving[0];
  if (worst !== undefined) {
    const { reason, message } = worst;
    return {
      phase: worst.phase === "Halted" ? "Halted" : isStalled(worst) ? "Stalled" : "Rolling",
      reason: toldReason(reason),
      message,
    };
  }
  const last = stages.at(-1);
  const passed = legs.find(({ stage, phase }) => stage === last?.name && phase === "Passed");
  if (passed !== undefined || (last?.on === content && content > 0))
    return { phase: "Complete", reason: "Complete", message: passed?.message ?? "" };
  const next = nextStage(content, stages);
  if (next !== undefined) return { phase: "Waiting", reason: "Waiting", message: waitingText(next) };
  const ended = legs.find(({ phase }) => phase === "Superseded");
  const past = stages.find(({ name }) => !legs.some(({ stage, phase }) => stage === name && phase === "Passed"));
  const message = ended?.message ?? (past === undefined ? "" : `stage ${past.name} takes a newer content instead`);
  return { phase: "Superseded", reason: "Newer", message };
}

/** The stage that takes it when it can: the one before it is on it, and it has nothing as new. */
function nextStage(content: number, stages: readonly Stage[]): Stage | undefined {
  return stages.find((stage, index) => {
    const has = Math.max(stage.on ?? 0, stage.moving?.content ?? 0);
    return stages[index - 1]?.on === content && has < content;
  });
}

function waitingText({ name, moving }: Stage): string {
  return moving === undefined
    ? `stage ${name} takes it next`
    : `stage ${name} takes it when it is through with content ${moving.content}`;
}
