/** The plan of a rollout for a stage, which people or programs approve. */

import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { askedPlan } from "#shared/fleet/rollout/plan-hash.ts";
import type {
  AskedPlan,
  RolloutRow,
  SnapshotTarget,
  StageGates,
  StageRecord,
} from "#shared/fleet/rows/rollout-rows.ts";

/** The gates of a stage by the present spec; undefined when it has none. */
export function gatesOfStage({ row }: Pick<Known, "row">, { name }: Pick<StageRecord, "name">): StageGates | undefined {
  const { before, after } = relationOf(row).rollout.stages.find((one) => one.name === name) ?? {};
  return (before ?? after) === undefined ? undefined : defined({ before, after });
}

export interface Planning {
  readonly stage: StageRecord;
  readonly rollout: RolloutRow;
  readonly targets: readonly SnapshotTarget[];
  readonly gates: StageGates;
}

export function stagePlan(transaction: Transaction, { stage, rollout, targets, gates }: Planning): AskedPlan {
  const { known, rolloutState } = transaction;
  const { templates } = rolloutState;
  const current = identityIn(transaction, stage);
  return askedPlan({ owner: known.owner, stage: stage.name, targets, plan: rollout.plan, templates, gates, current });
}

/** The identity of the stage's current rollout. */
export function identityIn(transaction: Transaction, { current }: StageRecord): string | undefined {
  return current === undefined ? undefined : transaction.rollout(current).identity;
}
