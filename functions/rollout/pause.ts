import { wakeUp } from "#functions/rollout/assign.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";

/**
 * Suspended time spends no deadline: what was begun before starts its own anew when it ends, and whoever stood still
 * meanwhile is told.
 */
export async function pause({ unit, row, ...known }: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const isSuspended = row.operations.suspended !== undefined;
  if (isSuspended === (unit.pausedAt !== undefined)) return undefined;
  const transaction = new Transaction({ unit, row, ...known }, ports.clock.now());
  const times = isSuspended ? { pausedAt: transaction.at } : { pausedAt: undefined, resumedAt: transaction.at };
  transaction.edit({ ...times, deadline: undefined });
  if (isSuspended) return transaction;
  const slots = await rowsAbout(ranges.slots(known.subject), ports.table);
  for (const { cluster, parking } of slots.rows)
    if (parking === undefined) transaction.messages.push(...wakeUp(cluster, undefined, transaction.now));
  return transaction;
}
