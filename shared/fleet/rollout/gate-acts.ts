/** The acts of people on single stage runs: for which stage run each holds, and how long it is kept. Pure. */
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { Act, GateAct, Operations, Promotion, Retry } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";

/** The number of acts that an owner's row keeps. */
export const mostGateActs = 50;

/** `promoted by ana: INC-1`. */
export function statedText(what: string, { by, reason }: Pick<Act, "by" | "reason">): string {
  return `${what} by ${by}${reason === undefined ? "" : `: ${reason}`}`;
}

export function promotionOf({ gates = [] }: Operations, stageRun: StageRunRef | undefined): Promotion | undefined {
  return gates.filter((act) => act.verb === "promote").findLast((act) => isSameStageRun(act, stageRun));
}

/** The retries that the planner has not started, the oldest first. */
export function newRetries(
  { gates = [] }: Operations,
  { handledAct = 0 }: Pick<RolloutStateRow, "handledAct">,
): readonly Retry[] {
  return gates.filter((act) => act.verb === "retry").filter(({ number }) => number > handledAct);
}

/**
 * The acts without retries that were started, and without those whose stage run is over: no later one has its number
 * and snapshot.
 */
export function keptGateActs(
  { gates = [] }: Operations,
  rolloutState: RolloutStateRow | undefined,
): readonly GateAct[] {
  const stages = rolloutState?.stages ?? [];
  const { handledAct = 0 } = rolloutState ?? {};
  return gates.filter((act) =>
    act.verb === "retry" ? act.number > handledAct : stages.some(({ updatingTo }) => isSameStageRun(updatingTo, act)),
  );
}
