import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { gatesOfStage, identityIn, stagePlan } from "#functions/rollout/write/stage-plan.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { outdatedBy } from "#shared/fleet/rollout/approval.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { onTheWayTo } from "#shared/fleet/rollout/order.ts";
import type { PlanAhead, StageRecord } from "#shared/fleet/rows/rollout-rows.ts";

/** Whether some stage asks people, or has recorded what it will ask. */
export function mayPlanAhead({ row, rolloutState }: Pick<Known, "row" | "rolloutState">): boolean {
  return rolloutState.stages.some(
    (stage) => stage.gated !== undefined || gatesOfStage({ row }, stage)?.before !== undefined,
  );
}

/**
 * Records what each stage will ask people to approve, so that they can do so while an earlier stage has not passed the
 * rollout. The stage computes the hash again when it starts: an approval counts only for an equal one.
 * @returns undefined when the records are up to date.
 */
export async function planAhead(known: Known, _work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  for (const [index, stage] of known.rolloutState.stages.entries()) {
    const gated = await aheadOf(transaction, { index, stage }, ports);
    if (gated === stage.gated) continue;
    transaction.editStage(stage.name, ({ gated: _before, ...kept }) => ({ ...kept, ...defined({ gated }) }));
  }
  return transaction.hasChanged() ? transaction : undefined;
}

async function aheadOf(
  transaction: Transaction,
  { index, stage }: { readonly index: number; readonly stage: StageRecord },
  ports: PlannerPorts,
): Promise<PlanAhead | undefined> {
  const { known } = transaction;
  const { rolloutState, row } = known;
  const gates = gatesOfStage(known, stage);
  const number = onTheWayTo(rolloutState, index);
  const rollout = number === undefined ? undefined : known.rollouts.get(number);
  if (gates?.before === undefined || rollout === undefined || stage.members === 0) return undefined;
  if (row.operations.deletion !== undefined || rollout.plan.deletion !== undefined) return undefined;
  const { membersVersion, templates } = rolloutState;
  const current = identityIn(transaction, stage) ?? "";
  const from = digestOf({ rollout: rollout.number, membersVersion, templates, gates, current, stage: stage.name });
  if (stage.gated?.from === from) return stage.gated;
  const members = (await readMembers(known, ports)).filter(
    (member) => member.stage === stage.name && member.leaving === undefined,
  );
  const targets = members.map((member) => snapshotTarget(member, rollout.plan));
  const asked = stagePlan(transaction, { stage, rollout, targets, gates });
  const outdated = outdatedBy(stage.gated, asked, { stage: stage.name, approvals: row.operations.approvals });
  return { rollout: rollout.number, ...asked, from, ...defined({ outdated }) };
}
