import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { hasPassed, isOvertaken } from "#shared/fleet/rollout/order.ts";
import { isRejected, newRejections, withoutRejected, withRejected } from "#shared/fleet/rollout/rejection.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RejectedRollout } from "#shared/fleet/rows/rollout-rows.ts";

/** Carries out rejections by people, and the ends of them, in their order. @returns undefined without new ones. */
export async function rejectRollouts(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { table, clock } = ports;
  const transaction = new Transaction(known, clock.now());
  for (const act of newRejections(known.row, known.rolloutState)) {
    const { rolloutState } = transaction;
    const rejected =
      act.do === "unreject"
        ? withoutRejected(rolloutState, act.rollout)
        : withRejected(rolloutState, act, await table.get(keys.rollout(known.owner, act.rollout)));
    transaction.edit({ rejected: rejected.length === 0 ? undefined : rejected, handledRejection: act.number });
  }
  // A rollback has a greater number than the rollout that may be assigned again.
  const isBack = newRejections(known.row, known.rolloutState).some(({ do: what }) => what === "unreject");
  if (isBack && isOvertaken(transaction.rolloutState)) renumber(transaction);
  await bringForward(transaction, ports);
  return transaction.hasChanged() ? transaction : undefined;
}

/** Clusters that joined during a rejection, or returned, got something older instead: they catch up after its end. */
async function bringForward(transaction: Transaction, ports: PlannerPorts): Promise<void> {
  const { known, rolloutState } = transaction;
  const isOver = ({ rollout }: RejectedRollout) => !isRejected(rolloutState, rollout);
  const admitted = known.rolloutState.rejected?.filter(isOver) ?? [];
  // Nobody got anything instead of a rollout that no stage has passed.
  if (known.row.operations.deletion !== undefined || !admitted.some(({ rollout }) => hasPassed(rolloutState, rollout)))
    return;
  const members = (await readMembers(known, ports)).map(({ cluster }) => cluster);
  if (members.length > 0)
    transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(members), at: 0, only: "behind" });
}
