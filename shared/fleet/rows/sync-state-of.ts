import { type Phase, type SyncRow, waitsForTurn } from "#shared/fleet/rows/sync-row.ts";

/** The state of a Sync in the state index: the worker's phase, when it is about the newest assignment. */
export type SyncStateWord = Phase | "Assigned" | "Rejected" | "Orphaned";

/**
 * One word for what planner and worker wrote. A Sync that lost its slot is `Failed`, whether it was begun or not, until it
 * becomes ready all the same. A Sync that lost its slot to a cordon, a freeze or a closed window is not failed: it is
 * `Assigned`, as before its begin. A Sync whose worker does not run is `Unreachable` until a worker has reached its
 * cluster. A Sync whose rollout was rejected before its begin is `Rejected`, and not failed either.
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
  if (paused.rejected === true) return "Rejected";
  if (paused.zone !== undefined) return phase === "Reachable" ? phase : "Unreachable";
  return waitsForTurn(paused) ? "Assigned" : "Failed";
}
