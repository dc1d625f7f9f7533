import { type Brake, type Freeze, freezeOver, releasedAt } from "#shared/fleet/rows/brake-row.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";

/** What the brake says of one cluster. */
export interface Freezing {
  /** That holds it now: nothing is assigned to it. */
  readonly freeze?: Freeze | undefined;
  /** When one let go of it last. */
  readonly releasedAt?: string | undefined;
}

/** By cluster; of those that the brake has nothing to say of there is none. */
export function freezingOf(brake: Brake, fleet: readonly FleetRow[], now: Date): ReadonlyMap<string, Freezing> {
  const found = new Map<string, Freezing>();
  for (const { name, labels } of fleet) {
    const freezing: Freezing = { freeze: freezeOver(brake, labels, now), releasedAt: releasedAt(brake, labels, now) };
    if (freezing.freeze !== undefined || freezing.releasedAt !== undefined) found.set(name, freezing);
  }
  return found;
}
