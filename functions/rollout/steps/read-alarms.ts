import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { isWatched, withAlarms } from "#shared/fleet/rollout/alarms.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** Records what was read of the alarms of each bake. @returns undefined when that tells nothing new. */
export async function readAlarms(
  known: Known,
  _work: CallWork,
  { clock, table }: PlannerPorts,
): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, clock.now());
  for (const stageRun of stageRunsIn(known.rolloutState, known.stageRuns).filter(isWatched)) {
    const next = withAlarms(stageRun, await table.get(keys.alarms(known.owner, stageRun)));
    if (next !== stageRun) transaction.putStageRun(next);
  }
  return transaction.hasChanged() ? transaction : undefined;
}
