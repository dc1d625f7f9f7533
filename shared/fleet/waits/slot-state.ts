/** The worker's report about the attempt of a cluster with a slot: shown to people, and never counted. */
import type { SlotRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

export type SlotState = Extract<TargetState, "Assigned" | "Applying" | "Verifying">;

/** The Syncs that the slot was given for. */
export function assignedIn({ attempts }: Pick<SlotRow, "attempts">, syncs: readonly SyncRow[]): readonly SyncRow[] {
  return syncs.filter(({ name, desired }) => attempts[name] === desired.attempt);
}

/** @param syncs - Syncs of the cluster that were found. */
export function slotState(slot: Pick<SlotRow, "attempts">, syncs: readonly SyncRow[]): SlotState {
  const phases = assignedIn(slot, syncs).map(({ desired, observed }) =>
    observed?.attempt === desired.attempt ? observed.phase : undefined,
  );
  if (phases.every((phase) => phase === undefined)) return "Assigned";
  return phases.every((phase) => phase === "Verifying" || phase === "Ready") ? "Verifying" : "Applying";
}
