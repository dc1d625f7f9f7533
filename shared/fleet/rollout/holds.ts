/** The lists of clusters that a cause holds back, in stage runs and for catch-ups. Pure. */
import { defined } from "#shared/base/defined.ts";
import { type FreezeState, freezeOver } from "#shared/fleet/rows/freezes-row.ts";
import type { CatchUpsHeld, Hold, HoldCause, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** The freeze that holds a cluster with these labels back. */
export function freezeHold(
  freezeState: FreezeState,
  labels: Readonly<Record<string, string>>,
  now: Date,
): Pick<Hold, "cause" | "name"> | undefined {
  const freeze = freezeOver(freezeState, labels, now);
  return freeze && { cause: "freeze", name: freeze.name };
}

/** True for a cause that depends on freezes and labels alone: `letThaw` releases its targets. */
export function waitsForThaw({ cause }: Pick<Hold, "cause">): boolean {
  return cause === "freeze";
}

/** Orders of the targets that wait for a thaw. */
export function frozenIn({ holds }: Pick<StageRunRow, "holds">): readonly number[] {
  return holds.flatMap((hold) => (waitsForThaw(hold) ? hold.clusters : []));
}

/** Orders of the targets that a cause holds back, the one that waits longest first. */
export function heldIn({ holds }: Pick<StageRunRow, "holds">, cause: HoldCause): readonly number[] {
  return holds.flatMap((hold) => (hold.cause === cause ? hold.clusters : []));
}

/** One more target is held back. */
export function withHeld(
  holds: readonly Hold[],
  { cause, name }: Pick<Hold, "cause" | "name">,
  order: number,
): readonly Hold[] {
  const isSame = (hold: Hold) => hold.cause === cause && hold.name === name;
  if (!holds.some(isSame)) return [...holds, { cause, clusters: [order], ...defined({ name }) }];
  return holds.map((hold) => (isSame(hold) ? { ...hold, clusters: [...hold.clusters, order] } : hold));
}

/** The target is held back no longer. */
export function withoutHeld(holds: readonly Hold[], order: number): readonly Hold[] {
  return holds.flatMap((hold) => {
    const clusters = hold.clusters.filter((other) => other !== order);
    return clusters.length === 0 ? [] : [{ ...hold, clusters }];
  });
}

/** Number of catch-ups that a cause holds back. */
export function countHeld({ holds }: Pick<CatchUpsHeld, "holds">, cause: HoldCause): number {
  return holds.reduce((sum, hold) => sum + (hold.cause === cause ? hold.clusters : 0), 0);
}
