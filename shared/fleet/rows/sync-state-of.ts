import type { Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** The state that the index has of a Sync: the worker's word, where it has one about the newest assignment. */
export type SyncStateWord = Phase | "Assigned" | "Orphaned";

/**
 * The one word for what planner and worker wrote. What lost its slot is `Failed`, begun or not, until everything turns out
 * well all the same; where a freeze took it, nothing is wrong with it, and it is as it was before it was begun.
 */
export function syncStateOf({
  desired,
  observed,
  paused,
}: Pick<SyncRow, "desired" | "observed" | "paused">): SyncStateWord {
  if (desired.action === "orphan") return "Orphaned";
  const phase = observed?.attempt === desired.attempt ? observed.phase : "Assigned";
  const isWell = phase === "Ready" || phase === "Gone";
  if (paused === undefined || isWell) return phase;
  return paused.freeze === undefined ? "Failed" : "Assigned";
}
