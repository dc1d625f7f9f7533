import { wakeUp } from "#functions/rollout/assign.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";

/** Whoever stood still while the subject was suspended is told that it no longer is: until then its status says that it is. */
export async function wakeResumed(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { status, operations } = known.row;
  if (status.state !== "Suspended" || operations.suspended !== undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  // What was begun has all its time anew.
  transaction.edit({ deadline: undefined });
  const slots = await rowsAbout(ranges.slots(known.subject), ports.table);
  for (const { cluster, parking } of slots.rows)
    if (parking === undefined) transaction.messages.push(...wakeUp(cluster, undefined, transaction.now));
  return transaction;
}
