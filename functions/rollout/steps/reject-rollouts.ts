import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { newRejections, withoutRejected, withRejected } from "#shared/fleet/rollout/rejection.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** Carries out rejections by people, and the ends of them, in their order. @returns undefined without new ones. */
export async function rejectRollouts(
  known: Known,
  _work: CallWork,
  { table, clock }: PlannerPorts,
): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, clock.now());
  for (const act of newRejections(known.row, known.rolloutState)) {
    const { rolloutState } = transaction;
    const rejected =
      act.do === "unreject"
        ? withoutRejected(rolloutState, act.rollout)
        : withRejected(rolloutState, act, await table.get(keys.rollout(known.owner, act.rollout)));
    transaction.edit({ rejected: rejected.length === 0 ? undefined : rejected, handledRejection: act.number });
  }
  return transaction.hasChanged() ? transaction : undefined;
}
