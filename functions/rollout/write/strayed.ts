import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readMembers } from "#functions/rollout/read/read-members.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { isLeftBehind } from "#shared/fleet/rollout/facts.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRef, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Why a failed or unreachable cluster is no longer a target of its stage, by the list of members; undefined when it
 * still is. A cluster that has left a stage no longer affects that stage's verdict, whether it failed before or after.
 * Its success remains evidence. A deletion concerns every cluster that has something, in whatever stage.
 */
export async function strayedFrom(
  transaction: Transaction,
  { stageRun: ref, cluster }: { readonly stageRun: StageRunRef; readonly cluster: string },
  ports: PlannerPorts,
): Promise<string | undefined> {
  const { known, rolloutState } = transaction;
  const stageRun = transaction.stageRun(ref);
  // No cluster has moved since the snapshot.
  if (stageRun === undefined || stageRun.membersVersion === rolloutState.membersVersion) return undefined;
  if (transaction.rollout(stageRun.rollout).plan.deletion !== undefined) return undefined;
  // The stage may have been renamed.
  const stage = rolloutState.stages.find(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const member = (await readMembers(known, ports)).find((one) => one.cluster === cluster);
  // A job forgets clusters that are in no stage.
  if (stage === undefined || member === undefined || member.stage === stage.name) return undefined;
  return `moved to stage ${member.stage}`;
}

/** A cluster's failed or unreachable targets from before it left their stages. */
export async function releaseTemplates(
  transaction: Transaction,
  targets: readonly TargetRow[],
  ports: PlannerPorts,
): Promise<void> {
  for (const target of targets.filter(isLeftBehind)) {
    const reason = await strayedFrom(transaction, target, ports);
    if (reason !== undefined) transaction.amend(target, { state: "Skipped", reason });
  }
}
