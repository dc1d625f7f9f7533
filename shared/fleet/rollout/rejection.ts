/** Rejected rollouts: which they are, and what rejects or admits one. Pure. */

import { defined } from "#shared/base/defined.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import type { OwnerRow, RolloutRejection } from "#shared/fleet/rows/object-rows.ts";
import type { RejectedRollout, RolloutRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Number of rejections that an owner remembers: a rejected commit may come again long after. */
const keptRejections = 50;

type Rejecting = Pick<RolloutStateRow, "rejected">;

export function rejectionOf({ rejected }: Rejecting, rollout: number): RejectedRollout | undefined {
  return rejected?.find((one) => one.rollout === rollout);
}

export function isRejected(rolloutState: Rejecting, rollout: number): boolean {
  return rejectionOf(rolloutState, rollout) !== undefined;
}

/** The acts of people that the planner has not carried out, in their order. */
export function newRejections(
  { operations }: Pick<OwnerRow, "operations">,
  { handledRejection = 0 }: Pick<RolloutStateRow, "handledRejection">,
): readonly RolloutRejection[] {
  const acts = operations.rejections ?? [];
  return acts.filter(({ number }) => number > handledRejection).toSorted((a, b) => a.number - b.number);
}

/** @param rollout - the rejected rollout; undefined when it is no longer kept. */
export function withRejected(
  { rejected = [] }: Rejecting,
  { rollout: number, by, at, reason }: Pick<RolloutRejection, "rollout" | "by" | "at" | "reason">,
  rollout: Pick<RolloutRow, "plan" | "trigger"> | undefined,
): readonly RejectedRollout[] {
  // A rollout of the same plan with other inputs brought in no plan of its own.
  const planHash = rollout?.trigger === "plan" ? rollout.plan.planHash : undefined;
  const others = rejected.filter((one) => one.rollout !== number);
  return [...others, { rollout: number, by, at, ...defined({ reason, planHash }) }].slice(-keptRejections);
}

/** The rollout may be assigned again, and so may those that were rejected because they have its plan. */
export function withoutRejected({ rejected = [] }: Rejecting, number: number): readonly RejectedRollout[] {
  return rejected.filter(({ rollout, like }) => rollout !== number && like !== number);
}

/** The rejection of another rollout that is one of this plan as well. */
export function likeRejected({ rejected = [] }: Rejecting, planHash: string): RejectedRollout | undefined {
  return rejected.find((one) => one.like === undefined && one.planHash === planHash);
}

/** A new rollout is rejected with the one whose plan it has. */
export function withLike(
  { rejected = [] }: Rejecting,
  { number, plan }: Pick<RolloutRow, "number" | "plan">,
): readonly RejectedRollout[] {
  const same = likeRejected({ rejected }, plan.planHash);
  if (same === undefined) return rejected;
  const { rollout: like, planHash: _same, ...why } = same;
  return [...rejected, { ...why, rollout: number, like }].slice(-keptRejections);
}

/** `rejected by ana: INC-1`; of a rollout with the plan of a rejected one, that one as well. */
export function rejectedText({ like, ...why }: RejectedRollout): string {
  const same = like === undefined ? "" : `has the plan of rollout ${like}, which was `;
  return `${same}${statedText("rejected", why)}`;
}
