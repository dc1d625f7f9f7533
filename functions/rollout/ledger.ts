import { defined } from "#shared/base/defined.ts";
import type { ContentRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";

/** A unit keeps so many of the newest contents, besides those that a stage is on or moves to. */
const keptContents = 10;

/** What a unit knows of its contents when there is one more: the others that it kept are past, and collected. */
export function withContent(
  { stages, former, ledger, past = [] }: UnitRow,
  { number, identity, revision, createdAt: at }: ContentRow,
): Pick<UnitRow, "last" | "ledger" | "past"> {
  const named = new Set([former, ...stages.flatMap(({ on, moving, bar }) => [on, moving?.content, bar?.above])]);
  const all = [{ number, identity, revision, at }, ...ledger];
  const isKept = (entry: { readonly number: number }, index: number) => index < keptContents || named.has(entry.number);
  const others = all.filter((entry, index) => !isKept(entry, index)).map((entry) => entry.number);
  return { last: number, ledger: all.filter(isKept), ...pastOf([...past, ...others]) };
}

/** Something else is wanted than before, by its identity: where no stage took that, it is skipped. */
export function withWanted(
  { wanted, skipped, ledger }: Pick<UnitRow, "wanted" | "skipped" | "ledger">,
  now: NonNullable<UnitRow["wanted"]>,
): { readonly [Name in "wanted" | "skipped"]: UnitRow[Name] | undefined } {
  const next = now.identity === ledger[0]?.identity ? undefined : now;
  if (wanted === undefined || wanted.identity === now.identity) return { wanted: next, skipped };
  const { count = 0, from = wanted.revision } = skipped ?? {};
  return { wanted: next, skipped: { count: count + 1, from, to: wanted.revision } };
}

/** Of one that another object left, or that goes, everything is past. */
export function allPast({ ledger, past = [] }: Pick<UnitRow, "ledger" | "past">): Pick<UnitRow, "past"> {
  return pastOf([...past, ...ledger.map(({ number }) => number)]);
}

function pastOf(numbers: readonly number[]): Pick<UnitRow, "past"> {
  return defined({ past: numbers.length === 0 ? undefined : numbers });
}
