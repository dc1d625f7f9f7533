/** The members that a guard lets a group have. */

import type { Fleet } from "#functions/rollout/read/fleet.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { stateEntries } from "#shared/adapters/state-entries.ts";
import { type Member, relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { afterRead } from "#shared/fleet/rollout/guard.ts";
import { type GuardedMembers, guardedMembers } from "#shared/fleet/rollout/guarded-members.ts";

interface Found {
  readonly known: Known;
  /** The members before, by the present names of their stages. */
  readonly former: readonly Member[];
  /** The clusters that are selected now. */
  readonly found: readonly Member[];
  readonly fleet: Fleet;
}

/** @returns the members, without the clusters that the guard withholds, and the guard's state. */
export async function guardMembers(
  { known, former, found, fleet }: Found,
  ports: PlannerPorts,
): Promise<Pick<GuardedMembers, "members"> & Partial<GuardedMembers>> {
  const { row, guarded, rolloutState, owner } = known;
  const now = ports.clock.now();
  const guard = afterRead({ row: guarded, guard: rolloutState.guard, now });
  if (guard === undefined) return { members: found };
  const { names } = relationOf(row).clusters;
  return guardedMembers({
    facts: { row: guarded, guard, now },
    rolloutState,
    former,
    found,
    // A cluster that the selection does not name was not asked for.
    isRegistered: (cluster) =>
      (names !== undefined && !names.includes(cluster)) || fleet.clusters.some(({ name }) => name === cluster),
    withSyncs: async () => new Set((await stateEntries(owner, ports.table)).map(({ cluster }) => cluster)),
  });
}
