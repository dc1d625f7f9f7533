import type { Assignment } from "#shared/fleet/rollout/assignments.ts";
import type { ClusterRows } from "#shared/fleet/rollout/facts.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isOutstanding, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * Most assignments of one cluster in one step, and of one slot; the others follow when these are done. They always fit into
 * a transaction with their other rows: twelve stages leave room for 74 rows. Up to 20 rows are templates that the cluster
 * gets or loses, up to 50 are removals or paused attempts of its slot, and 4 are its slot and similar rows.
 */
export const mostAssignments = 50;

/** Why an attempt is paused that its slot has no room for. */
export const followsText = "it follows when the rest of its slot is done";

/** The assignments of one step for a cluster, and what its slot is for afterwards. */
export interface Portion {
  readonly written: readonly Assignment[];
  /** The slot's attempts that continue as they are, by name. */
  readonly goingOn: SlotRow["attempts"];
  /**
   * Attempts of the slot that are paused, because a slot names at most `mostAssignments`. The next turn assigns them
   * again.
   */
  readonly paused: readonly SyncRow[];
  /** This step does not assign everything. */
  readonly isPart: boolean;
}

/**
 * Limits the attempts of a slot. Without the limit, each renaming of all templates adds some to the slot of a cluster
 * whose worker does not begin, until no transaction can hold the slot. Templates that the rollout applies come first;
 * then deletions that the slot names already.
 */
export function portionOf(
  { slot, syncs }: Pick<ClusterRows, "slot" | "syncs">,
  { assignments, leaving }: { readonly assignments: readonly Assignment[]; readonly leaving: readonly SyncRow[] },
): Portion {
  const isOpen = (sync: SyncRow) => slot?.attempts[sync.name] === sync.desired.attempt && isOutstanding(sync);
  const left = new Set(leaving.map(({ name }) => name));
  const open = syncs.filter((sync) => isOpen(sync) && !left.has(sync.name));
  const openNames = new Set(open.map(({ name }) => name));
  const rankOf = ({ name, desired }: Assignment) => (desired.action === "apply" ? 0 : openNames.has(name) ? 1 : 2);
  const written = assignments.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, mostAssignments);
  const given = new Set(written.map(({ name }) => name));
  const others = open.filter(({ name }) => !given.has(name));
  const kept = others.slice(0, mostAssignments - written.length);
  const paused = others.slice(kept.length);
  return {
    written,
    goingOn: Object.fromEntries(kept.map(({ name, desired }) => [name, desired.attempt])),
    paused,
    isPart: written.length < assignments.length || paused.length > 0,
  };
}
