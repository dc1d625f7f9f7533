import type { Transaction } from "#functions/rollout/write/transaction.ts";

/** The same plan gets another rollout, which goes through all stages again. */
export function renumber(transaction: Transaction): void {
  transaction.edit({ inputsVersion: transaction.known.rolloutState.inputsVersion + 1 });
}
