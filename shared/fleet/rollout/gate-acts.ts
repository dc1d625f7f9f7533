/** The acts of people on single stage runs: for which stage run each holds, and how long it is kept. Pure. */
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { Act, GateAct, Operations, Promotion } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";

/** The number of acts that an owner's row keeps. */
export const mostGateActs = 50;

/** `promoted by ana: INC-1`. */
export function statedText(what: string, { by, reason }: Pick<Act, "by" | "reason">): string {
  return `${what} by ${by}${reason === undefined ? "" : `: ${reason}`}`;
}

export function promotionOf({ gates = [] }: Operations, stageRun: StageRunRef | undefined): Promotion | undefined {
  return gates.findLast((act) => act.verb === "promote" && isSameStageRun(act, stageRun));
}

/** The acts without those whose stage run is over: no later one has its number and snapshot. */
export function keptGateActs(
  { gates = [] }: Operations,
  rolloutState: RolloutStateRow | undefined,
): readonly GateAct[] {
  const stages = rolloutState?.stages ?? [];
  return gates.filter((act) => stages.some(({ updatingTo }) => isSameStageRun(updatingTo, act)));
}
