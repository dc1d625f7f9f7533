import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { isBlobLost } from "#shared/base/errors.ts";
import { isToRenew } from "#shared/fleet/blob-life.ts";

/**
 * Every list that is named is stored once more, in time: what is named later was stored later. A list that no row names
 * goes by itself, also one whose writer died. @returns undefined while all are young.
 */
export async function renewLists(known: Known, { lists, clock }: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, clock.now());
  const named = listsOf(known);
  if (named.size === 0 || !isToRenew(known.unit.listsAt, transaction.now)) return undefined;
  for (const key of named) {
    try {
      await lists.store(await lists.read(key));
    } catch (error) {
      // Whoever needs it makes it anew.
      if (!isBlobLost(error)) throw error;
    }
  }
  transaction.edit({ listsAt: transaction.at });
  return transaction;
}

/** Jobs are done by then. */
function listsOf({ unit, legs }: Known): ReadonlySet<string> {
  const ofLegs = [...legs.values()].flatMap(({ pages }) => pages.map(({ key }) => key));
  return new Set([unit.members, unit.sweep?.clusters, ...ofLegs].filter((key) => key !== undefined));
}
