import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

type Content = Omit<RolloutRow, keyof Row | "owner" | "number" | "createdAt" | "correlationId">;

/** The row of a rollout with the next number. */
export function nextRollout({ known, at }: Pick<Transaction, "known" | "at">, content: Content): RolloutRow {
  const { owner, rolloutState } = known;
  const number = rolloutState.last + 1;
  return {
    ...keys.rollout(owner, number),
    type: "Rollout",
    schema: rowSchema,
    version: 1,
    owner,
    number,
    ...content,
    ...defined({ correlationId: currentCorrelation() }),
    createdAt: at,
  };
}
