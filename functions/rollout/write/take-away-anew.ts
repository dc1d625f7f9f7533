import type { Transaction } from "#functions/rollout/write/transaction.ts";

/** The same plan with another number: clusters that have something that it does not have lose that. */
export function takeAwayAnew(transaction: Transaction): void {
  transaction.edit({ inputsVersion: transaction.known.rolloutState.inputsVersion + 1 });
}
