/** The acts of people on single stage runs: for which stage run each holds, and how long it is kept. Pure. */
import { matchesSelector, type SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import { type NamedClusters, namesSome } from "#shared/fleet/rows/named-clusters.ts";
import type { GateAct, Operations, Promotion, Retry, Skip } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";

/** The number of acts that an owner's row keeps. */
export const mostGateActs = 50;

/** `skipped by ana: INC-1`. */
export function skippedText(act: Skip): string {
  return statedText("skipped", act);
}

export function promotionOf({ gates = [] }: Operations, stageRun: StageRunRef | undefined): Promotion | undefined {
  return gates.filter((act) => act.verb === "promote").findLast((act) => isSameStageRun(act, stageRun));
}

/** The retries and skips that the planner has not started, the oldest first. */
export function newTargetActs(
  { gates = [] }: Operations,
  { handledAct = 0 }: Pick<RolloutStateRow, "handledAct">,
): readonly (Retry | Skip)[] {
  return gates.filter((act) => act.verb !== "promote").filter(({ number }) => number > handledAct);
}

/** The skips that the planner has not started: it checks all slots for them. */
export function newSkips(
  { operations }: { readonly operations: Operations },
  { rolloutState }: { readonly rolloutState: Pick<RolloutStateRow, "handledAct"> },
): readonly Skip[] {
  return newTargetActs(operations, rolloutState).filter((act) => act.verb === "skip");
}

type Stages = Pick<RolloutStateRow, "stages">;

/** A skip stays with its stage after the stage got another name. */
function concerns(act: Skip, { rollout, stage }: Pick<StageRunRef, "rollout" | "stage">, { stages }: Stages): boolean {
  return act.rollout === rollout && (act.stage === stage || stages.every(({ name }) => name !== act.stage));
}

/** An act names a cluster, or selects it. A retry of every failed cluster names none. */
function namesCluster({ cluster, clusters }: NamedClusters, { name, labels }: SelectableCluster): boolean {
  return cluster === name || (clusters !== undefined && matchesSelector(clusters.selector, labels));
}

/** The skip of a target: the newest act that names its cluster counts. */
export function skipOf(
  { gates = [] }: Operations,
  stageRun: Pick<StageRunRef, "rollout" | "stage">,
  { cluster, rolloutState }: { readonly cluster: SelectableCluster; readonly rolloutState: Stages },
): Skip | undefined {
  const newest = gates
    .filter((act) => act.verb !== "promote")
    .filter((act) => act.verb === "retry" || concerns(act, stageRun, rolloutState))
    .findLast((act) => namesCluster(act, cluster));
  return newest?.verb === "skip" ? newest : undefined;
}

/** True when some targets of the stage run may be skipped: without, nothing is read about that. */
export function hasSkips(
  { gates = [] }: Operations,
  stageRun: Pick<StageRunRef, "rollout" | "stage"> | undefined,
  rolloutState: Stages,
): boolean {
  return stageRun !== undefined && gates.some((act) => act.verb === "skip" && concerns(act, stageRun, rolloutState));
}

/**
 * The acts without retries that were started, and without those whose stage run is over: no later one has its number
 * and snapshot. A started retry that names clusters is kept with the skips before it, because it ends them.
 */
export function keptGateActs(
  { gates = [] }: Operations,
  rolloutState: RolloutStateRow | undefined,
): readonly GateAct[] {
  const stages = rolloutState?.stages ?? [];
  const { handledAct = 0 } = rolloutState ?? {};
  const runs = stages.flatMap(({ updatingTo }) => updatingTo ?? []);
  const isKept = (act: Exclude<GateAct, Retry>) =>
    runs.some((run) => (act.verb === "skip" ? concerns(act, run, { stages }) : isSameStageRun(run, act)));
  const kept = gates.filter((act) => (act.verb === "retry" ? act.number > handledAct : isKept(act)));
  const [firstSkip] = kept.filter(({ verb }) => verb === "skip");
  const isNeeded = (act: Retry) => firstSkip !== undefined && act.number > firstSkip.number && namesSome(act);
  return gates.filter((act) => kept.includes(act) || (act.verb === "retry" && isNeeded(act)));
}
