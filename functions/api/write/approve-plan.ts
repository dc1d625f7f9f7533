import { refusal } from "#functions/api/request/refusal.ts";
import { type Facts, namedStage } from "#functions/api/write/rollout-verb.ts";
import { approvalOf, approverOf, expiresAt, isAllowed, validApprovals } from "#shared/fleet/rollout/approval.ts";
import { stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";

/** Number of approvals that a row keeps: those of plans that are over are of no use. */
const keptApprovals = 50;

/**
 * Approves the plan that the request names, and no other: a plan that has changed meanwhile needs another look.
 * @throws StarlingError `BadRequest`, `StageRunChanged`, `NotGated`, `Forbidden`
 */
export function decideApprove({
  row,
  rolloutState,
  stageRuns,
  body: { stage: name, plan },
  act,
  now,
  object,
}: Facts<"approve">): Operations | undefined {
  const stage = namedStage(name, { rolloutState, object });
  const stageRun = stageRunOf(stage, stageRuns);
  const terms = stageRun && approvalOf(stageRun);
  if (stageRun === undefined || terms === undefined)
    throw refusal("NotGated", `nothing waits for an approval in stage ${name} of ${object}; nothing was approved`);
  const { rollout, planHash = "", approvedBy } = stageRun;
  if (planHash !== plan) {
    const waiting = `rollout ${rollout} with plan ${planHash} is in stage ${name} of ${object}`;
    throw refusal("StageRunChanged", `${waiting}, not plan ${plan}; nothing was approved`);
  }
  if (!isAllowed(terms, act.by))
    throw refusal(
      "Forbidden",
      `${act.by} may not approve in stage ${name} of ${object}; these may: ${terms.by.join(", ")}`,
    );
  const approvals = row.operations.approvals ?? [];
  const isKnown = validApprovals(stageRun, approvals).some(({ by }) => approverOf(by) === approverOf(act.by));
  if (isKnown || approvedBy !== undefined) return undefined;
  const end = expiresAt(stageRun) ?? "";
  if (stageRun.expired === true || end <= now.toISOString())
    throw refusal(
      "NotGated",
      `the time to approve rollout ${rollout} in stage ${name} ended at ${end}; nothing was approved: a refresh asks again`,
    );
  return { ...row.operations, approvals: [...approvals, { ...act, stage: name, plan }].slice(-keptApprovals) };
}
