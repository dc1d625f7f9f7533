import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type Fleet, readChanged, someAreReadable } from "#functions/rollout/read/fleet.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { type Before, membersAnew, membersFrom } from "#functions/rollout/write/write-members.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { type Known, selectedNow } from "#shared/fleet/rollout/facts.ts";
import { mayChangeMembers, membersWithheld } from "#shared/fleet/rollout/guard.ts";
import { fleetChanges } from "#shared/fleet/rows/fleet-version.ts";

/**
 * Computes the members again when the fleet or the selection has changed. Clusters that joined, moved or left are work
 * for jobs; snapshots stay as they are. When the selection is the same, only changes of the fleet are read.
 * @returns undefined when nothing has changed.
 */
export async function refreshMembers(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { by, fleet } = selectedNow(known);
  const { guarded, rolloutState } = known;
  const { selected, guard } = rolloutState;
  const isReadable = await someAreReadable(selected?.unread ?? [], ports.table);
  const isReleased = mayChangeMembers({ row: guarded, guard, now: ports.clock.now() });
  if (selected?.by === by && selected.fleet === fleet && !isReadable && !isReleased) return undefined;
  const before = await readMembers(known, ports);
  // A list of changed clusters does not tell whether the withheld ones are still selected.
  const isSelection = selected?.by === by && !isReadable && membersWithheld(guard).length === 0;
  const changed = isSelection ? await changedSince(selected.fleet, { known, before }, ports) : undefined;
  if (changed === undefined) return membersAnew(known, before, ports);
  return membersFrom(changed, { known, before }, ports);
}

/** @returns undefined when the whole directory has to be read, or the few named clusters. */
async function changedSince(
  since: string,
  { known: { row, rolloutState, fleetParts }, before }: Before,
  { table }: PlannerPorts,
): Promise<Fleet | undefined> {
  const isKnown = rolloutState.members !== undefined && before.every(({ uid }) => uid !== "");
  if (!isKnown || relationOf(row).clusters.names !== undefined) return undefined;
  const clusters = before.map(({ cluster }) => cluster);
  return readChanged(fleetChanges(since, fleetParts), clusters, table);
}
