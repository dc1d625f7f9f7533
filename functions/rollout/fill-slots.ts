import { fillCatchUps } from "#functions/rollout/fill-catch-ups.ts";
import { type Filling, fillStageRun, isOver } from "#functions/rollout/fill-stage-run.ts";
import { letThaw } from "#functions/rollout/let-thaw.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { moversOf, servedNext, turnsOf } from "#shared/fleet/rollout/slots.ts";
import { freezeOfAll } from "#shared/fleet/rows/freezes-row.ts";

/** Gives free slots to those whose turn it is. @returns undefined when there is nothing to give, or nobody to take it. */
export async function fillSlots(known: Known, filling: Filling): Promise<Transaction | undefined> {
  const now = filling.ports.clock.now();
  const { rolloutState, row } = known;
  const isGoing = row.operations.deletion !== undefined;
  if (row.operations.suspended !== undefined && !isGoing) return undefined;
  if (freezeOfAll(known.freezeState, now) !== undefined) return undefined;
  const thawed = await letThaw(known, filling.ports);
  if (thawed !== undefined) return thawed;
  const { rollout } = relationOf(row);
  const movers = moversOf({ rolloutState, stageRuns: known.stageRuns, rollout, isGoing });
  for (const { mover, slots } of turnsOf(rolloutState, movers, rollout)) {
    const transaction = new Transaction(known, now);
    if (mover.stageRun === undefined) await fillCatchUps(transaction, { ...filling, slots });
    // Those that have to wait are skipped: the ones behind them may not have to.
    else while ((await fillStageRun(transaction, { ...filling, stageRun: mover.stageRun, slots })) && !isOver(filling));
    if (transaction.hasChanged()) transaction.edit({ served: servedNext(rolloutState, mover) });
    else if (transaction.messages.length === 0 && !isOver(filling)) continue;
    return transaction;
  }
  return undefined;
}
