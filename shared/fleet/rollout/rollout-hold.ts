/** A hold of an owner's rollouts: which rollouts stages may take while it is in force. Pure. */

import { firstOf } from "#shared/base/counted.ts";
import { keptBack, type MayStart } from "#shared/fleet/rollout/order.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import type { OwnerRow, RolloutHold } from "#shared/fleet/rows/object-rows.ts";
import type { LedgerEntry } from "#shared/fleet/rows/rollout-rows.ts";

/** @returns the hold, while it is in force. A deletion goes on under every hold. */
export function holdInForce({ operations }: Pick<OwnerRow, "operations">, now: Date): RolloutHold | undefined {
  const { hold, deletion } = operations;
  if (hold === undefined || deletion !== undefined) return undefined;
  return hold.until === undefined || hold.until > now.toISOString() ? hold : undefined;
}

/** The rollouts that stages may take under a hold. @param hold - the hold in force. @returns undefined without one. */
export function mayStartUnder(hold: RolloutHold | undefined): MayStart | undefined {
  return hold && ((rollout) => hold.except?.includes(rollout) === true);
}

/** The rollouts that a hold keeps back, the newest first. */
export function keptBackBy(
  hold: RolloutHold | undefined,
  rolloutState: Parameters<typeof keptBack>[0],
): readonly LedgerEntry[] {
  const mayStart = mayStartUnder(hold);
  return mayStart === undefined ? [] : keptBack(rolloutState, mayStart);
}

/** @param kept - the rollouts that it keeps back, the newest first. */
export function heldText(hold: RolloutHold, kept: readonly LedgerEntry[]): string {
  const numbers = firstOf(
    kept.map(({ number }) => String(number)),
    { most: 3, count: kept.length },
  );
  const waiting = kept.length === 1 ? `rollout ${numbers} waits` : `rollouts ${numbers} wait`;
  return `${statedText("held", hold)}; ${kept.length === 0 ? "no rollout waits" : waiting}`;
}
