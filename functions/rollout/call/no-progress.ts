import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The remaining work of a call. */
export interface Remaining {
  /** The first cluster that has to be checked. */
  readonly slot: SlotRow | undefined;
  readonly counts: readonly number[];
}

/** @throws StarlingError `NoProgress` when a step changed nothing: the call would repeat the step for ever. */
export function requireProgress(
  { step, transaction }: { readonly step: string; readonly transaction: Transaction },
  before: Remaining,
  after: Remaining,
): void {
  const isSame = before.counts.join() === after.counts.join();
  if (!isSame || transaction.isNews()) return;
  const { rolloutState, known } = transaction;
  const { slot } = before;
  const row = slot === undefined ? `${rolloutState.pk} ${rolloutState.sk}` : `${slot.pk} ${slot.sk}`;
  const size = slot === undefined ? "" : ` (attempts: ${Object.keys(slot.attempts).length})`;
  const message = `the planner's step ${step} changes nothing for ${known.owner.name}: row ${row}${size}; it is tried again, ever later`;
  throw new StarlingError(message, { code: "NoProgress", retry: "transient", data: { step, row } });
}
