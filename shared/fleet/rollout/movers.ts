import { defined } from "#shared/base/defined.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { waitingOf } from "#shared/fleet/rollout/legs.ts";
import type { Mover } from "#shared/fleet/rollout/slots.ts";
import type { LegRow, UnitRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface Movable {
  readonly unit: Pick<UnitRow, "stages" | "arrivals" | "last">;
  readonly legs: ReadonlyMap<string, LegRow>;
  readonly rollout: Pick<RolloutStrategy, "stages">;
  /** It is being deleted: nobody is taken to anything but that. */
  readonly isGoing: boolean;
}

/** The legs that may go on and have somebody waiting, and the arrivals. */
export function moversOf({ unit, legs, rollout, isGoing }: Movable): readonly Mover[] {
  const movers: Mover[] = [];
  for (const [stage, named] of unit.stages.entries()) {
    const leg = legOf(named, legs);
    if (leg === undefined || leg.phase !== "Moving" || waitingOf(leg) === 0) continue;
    // A subject that goes gives nothing more to anybody: its farewell is the newest content.
    if (isGoing && leg.content !== unit.last) continue;
    const { maxConcurrent } = rollout.stages.find(({ name }) => name === named.name) ?? {};
    movers.push({ stage, leg, ...defined({ maxConcurrent }) });
  }
  return unit.arrivals.waiting > 0 && !isGoing ? [...movers, {}] : movers;
}
