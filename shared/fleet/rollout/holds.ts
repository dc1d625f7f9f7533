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
