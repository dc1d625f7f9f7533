import { type CallWork, isOver } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { fillCatchUps } from "#functions/rollout/steps/fill/fill-catch-ups.ts";
import { fillStageRun } from "#functions/rollout/steps/fill/fill-stage-run.ts";
import { letThaw } from "#functions/rollout/steps/fill/let-thaw.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { moversOf, servedNext, turnsOf } from "#shared/fleet/rollout/slots.ts";
import { freezeOfAll } from "#shared/fleet/rows/freezes-row.ts";

/** Gives free slots to stage runs and catch-ups, in their turns. @returns undefined when none of them can get one. */
export async function fillSlots(known: Known, work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  // All slots have been checked, and stages have taken what that lets in.
  work.isFed = true;
  const now = ports.clock.now();
  const { rolloutState, row } = known;
  const isGoing = row.operations.deletion !== undefined;
  if (row.operations.suspended !== undefined && !isGoing) return undefined;
  if (freezeOfAll(known.freezeState, now) !== undefined) return undefined;
  const thawed = await letThaw(known, ports);
  if (thawed !== undefined) return thawed;
  const { rollout } = relationOf(row);
  const movers = moversOf({ rolloutState, stageRuns: known.stageRuns, rollout, isGoing });
  for (const { mover, slots } of turnsOf(rolloutState, movers, rollout)) {
    const transaction = new Transaction(known, now);
    if (mover.stageRun === undefined) await fillCatchUps(transaction, { work, slots }, ports);
    // Those that have to wait are skipped: the ones behind them may not have to.
    else
      while (
        (await fillStageRun(transaction, { work, stageRun: mover.stageRun, slots }, ports)) &&
        !isOver(work, ports)
      );
    if (transaction.hasChanged()) transaction.edit({ served: servedNext(rolloutState, mover) });
    else if (transaction.messages.length === 0 && !isOver(work, ports)) continue;
    return transaction;
  }
  return undefined;
}
