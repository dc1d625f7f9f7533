import type { FoundLease } from "#functions/rollout/read-clusters.ts";
import type { Deadlines, Verdict } from "#shared/fleet/rollout/judge.ts";
import type { CatchUpRow, SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";

type Clock = Deadlines & { readonly now: Date };

/** A slot, with the rows of its cluster. */
export interface SeenSlot {
  readonly slot: SlotRow;
  readonly syncs: readonly SyncRow[];
  readonly catchUps: readonly CatchUpRow[];
  readonly clock: Clock;
  readonly verdict: Verdict;
  /** Why this attempt writes nothing more. */
  readonly paused: Paused | undefined;
  /** Read when a slot is released while a worker may be writing. */
  readonly lease: FoundLease | undefined;
}
