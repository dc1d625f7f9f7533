import { defined } from "#shared/base/defined.ts";
import { keptRollouts, newestPlanned } from "#shared/fleet/rollout/order.ts";
import type { RolloutRow, RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Number of the newest rollouts that a rollout state keeps, besides the current ones and those in progress. */
const keptContents = 10;

/** The ledger with one more rollout: the others that it kept are past, and are deleted. */
export function withRollout(
  { ledger, past = [], ...stages }: RolloutStateRow,
  { number, identity, revision, rollback, takesBack, createdAt: at }: RolloutRow,
): Pick<RolloutStateRow, "last" | "ledger" | "past"> {
  const named = keptRollouts(stages);
  const all = [{ number, identity, revision, at, ...defined({ rollback, takesBack }) }, ...ledger];
  const isKept = (entry: { readonly number: number }, index: number) => index < keptContents || named.has(entry.number);
  const others = all.filter((entry, index) => !isKept(entry, index)).map((entry) => entry.number);
  return { last: number, ledger: all.filter(isKept), ...pastOf([...past, ...others]) };
}

/** Another plan is desired than before, by its identity: when no stage took the earlier one, it is skipped. */
export function withDesired(
  { desired, skipped, ledger }: Pick<RolloutStateRow, "desired" | "skipped" | "ledger">,
  now: NonNullable<RolloutStateRow["desired"]>,
): { readonly [Name in "desired" | "skipped"]: RolloutStateRow[Name] | undefined } {
  const next = now.identity === newestPlanned(ledger)?.identity ? undefined : now;
  if (desired === undefined || desired.identity === now.identity) return { desired: next, skipped };
  const { count = 0, from = desired.revision } = skipped ?? {};
  return { desired: next, skipped: { count: count + 1, from, to: desired.revision } };
}

/** For a rollout state of another object, or of an owner that is deleted, every rollout is past. */
export function allPast({
  ledger,
  past = [],
}: Pick<RolloutStateRow, "ledger" | "past">): Pick<RolloutStateRow, "past"> {
  return pastOf([...past, ...ledger.map(({ number }) => number)]);
}

function pastOf(numbers: readonly number[]): Pick<RolloutStateRow, "past"> {
  return defined({ past: numbers.length === 0 ? undefined : numbers });
}
