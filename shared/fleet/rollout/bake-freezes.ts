/** Freezes that cover every target of a stage run stop the clock of its bake. Pure. */

import { defined } from "#shared/base/defined.ts";
import { type Freeze, type FreezeState, freezeEnd, isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { Bake, BakeFreeze } from "#shared/fleet/rows/rollout-rows.ts";

interface EndingFreeze extends Freeze {
  /** When it ended; absent while it is in force. */
  readonly to?: string;
}

/** The freezes that were in force at some time of the bake, as far as they are still known. */
function during({ from }: Bake, { freezes, lifted }: FreezeState, now: Date): readonly EndingFreeze[] {
  const all = [
    ...freezes.map((freeze) => ({ ...freeze, ...defined({ to: isInForce(freeze, now) ? undefined : freeze.until }) })),
    ...lifted.map((freeze) => ({ ...freeze, to: freezeEnd(freeze) })),
  ];
  return all.filter(({ to }) => to === undefined || to > from);
}

type FreezeRef = Pick<Freeze, "name" | "at">;

/** A freeze that is changed keeps its beginning. */
export function isSameFreeze(one: FreezeRef, other: FreezeRef): boolean {
  return one.name === other.name && one.at === other.at;
}

/** The freezes of which the bake has not recorded whether they cover its targets. */
export function freezesToJudge(bake: Bake, freezeState: FreezeState, now: Date): readonly EndingFreeze[] {
  return during(bake, freezeState, now).filter((freeze) => !bake.freezes?.some((seen) => isSameFreeze(seen, freeze)));
}

/**
 * The bake with the freezes so far. One that was forgotten before its end was recorded has ended by now.
 * @param covers - whether a freeze that is new covers every target.
 * @returns the same bake when nothing is new.
 */
export function withFreezes(
  bake: Bake,
  {
    freezeState,
    covers,
    now,
  }: {
    readonly freezeState: FreezeState;
    readonly covers: (freeze: Freeze) => boolean;
    readonly now: Date;
  },
): Bake {
  const known = during(bake, freezeState, now);
  const before = bake.freezes ?? [];
  const ended = before.map((seen): BakeFreeze => {
    if (seen.to !== undefined) return seen;
    const found = known.find((freeze) => isSameFreeze(seen, freeze));
    return { ...seen, ...defined({ to: found === undefined ? now.toISOString() : found.to }) };
  });
  const added = freezesToJudge(bake, freezeState, now).map((freeze): BakeFreeze => {
    const { name, at, to } = freeze;
    return { name, at, covers: covers(freeze), ...defined({ to }) };
  });
  const isNew = added.length > 0 || ended.some(({ to }, index) => to !== before[index]?.to);
  return isNew ? { ...bake, freezes: [...ended, ...added] } : bake;
}

/** The freeze that stops the clock of the bake; undefined when it runs. */
export function freezeOfBake({ freezes = [] }: Bake): BakeFreeze | undefined {
  return freezes.find(({ covers, to }) => covers && to === undefined);
}

/** Seconds of the bake during which a freeze that has ended covered every target. */
export function frozenSeconds({ from, freezes = [] }: Bake): number {
  const spans = freezes
    .flatMap(({ covers, at, to }) => (covers && to !== undefined ? [{ at: at > from ? at : from, to }] : []))
    .sort((one, other) => (one.at < other.at ? -1 : 1));
  let [seconds, counted] = [0, from];
  for (const { at, to } of spans) {
    const start = at > counted ? at : counted;
    if (to <= start) continue;
    seconds += (Date.parse(to) - Date.parse(start)) / 1000;
    counted = to;
  }
  return seconds;
}
