import { defined } from "#shared/base/defined.ts";
import type { Deadlines } from "#shared/fleet/rollout/judge.ts";
import { type Brake, type Freeze, freezeOver, releasedAt } from "#shared/fleet/rows/brake-row.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";

/** What the brake says of one cluster. */
export interface Hold {
  /** That holds it now: nothing is assigned to it. */
  readonly freeze?: Freeze | undefined;
  /** When one let go of it last. */
  readonly releasedAt?: string | undefined;
}

/** By cluster; of those that the brake has nothing to say of there is none. */
export function holdsOf(brake: Brake, fleet: readonly FleetRow[], now: Date): ReadonlyMap<string, Hold> {
  const holds = new Map<string, Hold>();
  for (const { name, labels } of fleet) {
    const hold: Hold = { freeze: freezeOver(brake, labels, now), releasedAt: releasedAt(brake, labels, now) };
    if (hold.freeze !== undefined || hold.releasedAt !== undefined) holds.set(name, hold);
  }
  return holds;
}

/** A freeze spends no deadline: none runs while it lasts, and what was assigned before starts its own anew after it. */
export function deadlinesUnder(rollout: Deadlines, hold: Hold | undefined): Deadlines {
  if (hold === undefined) return rollout;
  const resumedAt = [rollout.resumedAt, hold.releasedAt].filter((time) => time !== undefined).sort();
  const last = resumedAt.at(-1);
  const pausedAt = rollout.pausedAt ?? hold.freeze?.at;
  return {
    strategy: rollout.strategy,
    ...defined({ pausedAt, resumedAt: last }),
  };
}
