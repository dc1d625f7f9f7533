import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { isLeftBehind } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRef, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Why one that failed, or does not answer, is no target of its stage any more, by the list of members; undefined where it is.
 * Who left a stage keeps it from nothing, whether it came to that before or after. What succeeded is evidence still. A
 * deletion is about everybody who has something, in whatever stage.
 */
export async function strayedFrom(
  transaction: Transaction,
  { stageRun: ref, cluster }: { readonly stageRun: StageRunRef; readonly cluster: string },
  ports: PlannerPorts,
): Promise<string | undefined> {
  const { known, rolloutState } = transaction;
  const stageRun = transaction.stageRun(ref);
  // Nobody has moved since it was sealed.
  if (stageRun === undefined || stageRun.membersVersion === rolloutState.membersVersion) return undefined;
  if (transaction.rollout(stageRun.rollout).plan.deletion !== undefined) return undefined;
  // It may have another name by now.
  const stage = rolloutState.stages.find(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const member = (await readMembers(known, ports)).find((one) => one.cluster === cluster);
  // Who is in none is forgotten by a job.
  if (stage === undefined || member === undefined || member.stage === stage.name) return undefined;
  return `moved to stage ${member.stage}`;
}

/** Of a cluster's targets those that it failed, or did not answer for, before it left their stages. */
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
