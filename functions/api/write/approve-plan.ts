import { refusal } from "#functions/api/request/refusal.ts";
import { type Facts, namedStage } from "#functions/api/write/rollout-verb.ts";
import { defined } from "#shared/base/defined.ts";
import { approvalOf, expiresAt, hasApproved, isAllowed } from "#shared/fleet/rollout/approval.ts";
import { answerTo, checkExpiresAt, checkOf, isCheckOpen } from "#shared/fleet/rollout/check-gate.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Approval, Operations } from "#shared/fleet/rows/object-rows.ts";
import type { PlanAhead, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

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
  body: { stage: name, plan, answer = "approved" },
  act,
  approver,
  now,
  object,
}: Facts<"approve">): Operations | undefined {
  const stage = namedStage(name, { rolloutState, object });
  const stageRun = stageRunOf(stage, stageRuns);
  const ahead = stage.gated;
  if (answer === "approved" && ahead?.planHash === plan && stageRun?.planHash !== plan)
    return approvedAhead(ahead, { row, stage: name, act, approver, object });
  if (stageRun !== undefined && isCheckOpen(stageRun))
    return answerOf(stageRun, { row, answer, plan, act, now, object });
  if (answer === "rejected")
    throw refusal("NotGated", `no check waits for an answer in stage ${name} of ${object}; nothing was rejected`);
  const terms = stageRun && approvalOf(stageRun);
  if (stageRun === undefined || terms === undefined) {
    if (ahead === undefined)
      throw refusal("NotGated", `nothing waits for an approval in stage ${name} of ${object}; nothing was approved`);
    const coming = `rollout ${ahead.rollout} with plan ${ahead.planHash} is on its way to stage ${name} of ${object}`;
    throw refusal("StageRunChanged", `${coming}, not plan ${plan}; nothing was approved`);
  }
  const { rollout, planHash = "", approvedBy } = stageRun;
  if (planHash !== plan) {
    const waiting = `rollout ${rollout} with plan ${planHash} is in stage ${name} of ${object}`;
    throw refusal("StageRunChanged", `${waiting}, not plan ${plan}; nothing was approved`);
  }
  requireApprover(terms, { stage: name, act, object });
  const approvals = row.operations.approvals ?? [];
  if (hasApproved(stageRun, approvals, { approver, by: act.by }) || approvedBy !== undefined) return undefined;
  const end = expiresAt(stageRun) ?? "";
  if (stageRun.expired === true || end <= now.toISOString())
    throw refusal(
      "NotGated",
      `the time to approve rollout ${rollout} in stage ${name} ended at ${end}; nothing was approved: a refresh asks again`,
    );
  return withApproval(row, { ...act, stage: name, plan, approver });
}

function withApproval({ operations }: Facts<"approve">["row"], approval: Approval): Operations {
  return { ...operations, approvals: [...(operations.approvals ?? []), approval].slice(-keptApprovals) };
}

type Approving = Pick<Facts<"approve">, "act" | "object"> & { readonly stage: string };

/** @throws StarlingError `Forbidden` */
function requireApprover({ by }: { readonly by: string[] }, { stage, act, object }: Approving): void {
  if (isAllowed({ by }, act.by)) return;
  throw refusal("Forbidden", `${act.by} may not approve in stage ${stage} of ${object}; these may: ${by.join(", ")}`);
}

/**
 * Approves what a stage will do when an earlier one has passed the rollout: the stage counts it if its plan is the same
 * then.
 * @throws StarlingError `NotGated`, `Forbidden`
 */
function approvedAhead(
  { planHash }: PlanAhead,
  { row, stage, act, approver, object }: Approving & Pick<Facts<"approve">, "row" | "approver">,
): Operations | undefined {
  const { before, after } = relationOf(row).rollout.stages.find(({ name }) => name === stage) ?? {};
  const terms = before?.[0]?.approval;
  if (terms === undefined)
    throw refusal("NotGated", `stage ${stage} of ${object} needs no approval any more; nothing was approved`);
  requireApprover(terms, { stage, act, object });
  const run = { stage, planHash, gates: defined({ before, after }) };
  if (hasApproved(run, row.operations.approvals ?? [], { approver, by: act.by })) return undefined;
  return withApproval(row, { ...act, stage, plan: planHash, approver });
}

interface Answering extends Pick<Facts<"approve">, "row" | "act" | "now" | "object"> {
  readonly plan: string;
  readonly answer: "approved" | "rejected";
}

/**
 * The answer of the principal of a check, once: a second one is as late as one after the deadline.
 * @throws StarlingError `StageRunChanged`, `Forbidden`, `NotGated`
 */
function answerOf(stageRun: StageRunRow, { row, plan, answer, act, now, object }: Answering): Operations | undefined {
  const { rollout, stage, planHash = "", check } = stageRun;
  const terms = checkOf(stageRun);
  if (terms === undefined || check === undefined) throw new Error(`stage ${stage} of ${object} asks nobody`);
  if (planHash !== plan) {
    const waiting = `rollout ${rollout} with plan ${planHash} is checked in stage ${stage} of ${object}`;
    throw refusal("StageRunChanged", `${waiting}, not plan ${plan}; nothing was ${answer}`);
  }
  if (!isAllowed({ by: [terms.principal] }, act.by))
    throw refusal(
      "Forbidden",
      `${act.by} may not answer the check in stage ${stage} of ${object}: ${terms.principal} may`,
    );
  const end = checkExpiresAt(stageRun) ?? "";
  if (end <= now.toISOString())
    throw refusal(
      "NotGated",
      `the time to answer about rollout ${rollout} in stage ${stage} ended at ${end}; nothing was ${answer}: a retry asks again`,
    );
  const approvals = row.operations.approvals ?? [];
  const given = answerTo(stageRun, approvals);
  if (given?.check?.answer === answer) return undefined;
  if (given !== undefined)
    throw refusal("NotGated", `${given.by} has ${given.check?.answer} the plan at ${given.at}; nothing was ${answer}`);
  const own = { ...act, stage, plan, check: { since: check.since, answer } };
  return withApproval(row, own);
}
