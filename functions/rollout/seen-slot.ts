import type { FoundLease } from "#functions/rollout/read-clusters.ts";
import type { Deadlines, Verdict } from "#shared/fleet/rollout/judge.ts";
import type { CatchUpRow, SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";

type Clock = Deadlines & { readonly now: Date };

/** A slot, and what there is of its cluster. */
export interface SeenSlot {
  readonly slot: SlotRow;
  readonly syncs: readonly SyncRow[];
  readonly catchUps: readonly CatchUpRow[];
  readonly clock: Clock;
  readonly verdict: Verdict;
  /** Nothing more is to be written by this attempt: why. */
  readonly paused: Paused | undefined;
  /** Read of what gives its slot back while a worker may be writing. */
  readonly lease: FoundLease | undefined;
}
