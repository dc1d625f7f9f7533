import { refusal } from "#functions/api/request/refusal.ts";
import { newRejections, rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import type { Act, Operations, OwnerRow, RolloutRejection } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The rollout that somebody rejects or admits again, and the facts that decide about it. */
export interface Rejecting {
  readonly row: Pick<OwnerRow, "operations">;
  /** Absent before the first plan. */
  readonly rolloutState: RolloutStateRow | undefined;
  readonly rollout: number;
  readonly act: Act;
  /** `SyncGroup payments/shop`. */
  readonly object: string;
}

/**
 * @returns the operations after it; undefined when nothing changes.
 * @throws StarlingError `BadRequest` for a rollout that is not kept.
 */
export function decideRejection(verb: RolloutRejection["do"], asked: Rejecting): Operations | undefined {
  const { row, rolloutState, rollout, act, object } = asked;
  const { operations } = row;
  // A rejection that it shares with another rollout ends with that one's: a person's own is recorded as well.
  const isRejected = isOrWillBeRejected(asked, { own: verb === "reject" });
  const known = verb === "reject" ? keptNumbers(rolloutState) : keptOrRejected(rolloutState);
  if (!isRejected && !known.includes(rollout)) throw unknownRollout("rollout", { object, rollout, known });
  if (isRejected === (verb === "reject")) return undefined;
  const others = (operations.rejections ?? []).filter((one) => one.rollout !== rollout);
  // An act that was carried out, about a rollout that is not rejected any more, has no effect.
  const isNew = new Set(newRejections(row, rolloutState ?? {}));
  const needed = others.filter((one) => isNew.has(one) || isOrWillBeRejected({ ...asked, rollout: one.rollout }));
  return { ...operations, rejections: [...needed, { ...act, rollout, do: verb }] };
}

/**
 * Whether the rollout is rejected once the planner has carried out what people asked for.
 * @param own - true counts no rejection that it has only because another rejected rollout has the same plan.
 */
export function isOrWillBeRejected(
  { row, rolloutState, rollout }: Pick<Rejecting, "row" | "rolloutState" | "rollout">,
  { own = false }: { readonly own?: boolean } = {},
): boolean {
  const asked = newRejections(row, rolloutState ?? {}).findLast((one) => one.rollout === rollout);
  if (asked !== undefined) return asked.do === "reject";
  const rejection = rejectionOf(rolloutState ?? {}, rollout);
  return rejection !== undefined && !(own && rejection.like !== undefined);
}

export function keptNumbers(rolloutState: RolloutStateRow | undefined): readonly number[] {
  return (rolloutState?.ledger ?? []).map(({ number }) => number);
}

/** A rollout stays rejected when it is no longer kept. */
function keptOrRejected(rolloutState: RolloutStateRow | undefined): readonly number[] {
  const rejected = (rolloutState?.rejected ?? []).map(({ rollout }) => rollout);
  return [...new Set([...keptNumbers(rolloutState), ...rejected.toReversed()])];
}

export function unknownRollout(
  field: string,
  { object, rollout, known }: { readonly object: string; readonly rollout: number; readonly known: readonly number[] },
) {
  const numbers = known.length === 0 ? "none" : known.join(", ");
  return refusal("BadRequest", `${field}: ${object} has no rollout ${rollout}; it keeps ${numbers}`);
}
