/** What the planner's decision is made from, and what it consists of. */

import type { Hold } from "#shared/fleet/rollout/holds.ts";
import type { Freeze } from "#shared/fleet/rows/brake-row.ts";
import type { RenderingRow, RolloutRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Assigned, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";

export interface PlannerState {
  readonly rollout: RolloutRow;
  readonly suspended: boolean;
  /** Holds every cluster: then those that wait are not even looked at. */
  readonly freeze?: Freeze | undefined;
  /** Number of the subject's last completed rollout. */
  readonly completed: number | undefined;
  /** Everything outstanding and parked, and the next targets of the stage in order. */
  readonly targets: readonly TargetRow[];
}

export interface Observations {
  /** Syncs of the clusters that `targets` and `carried` name. */
  readonly syncs: readonly SyncRow[];
  readonly renderings: ReadonlyMap<string, RenderingRow>;
  /** Of the clusters that wait or do not answer: whether they are still selected. Of others nothing is known. */
  readonly selected: ReadonlyMap<string, boolean>;
  /** Clusters of which a row cannot be read, and why: nothing is decided about them but that they are away. */
  readonly unreadable?: ReadonlyMap<string, string>;
  /** What the brake says of them. */
  readonly holds?: ReadonlyMap<string, Hold>;
}

export interface Assignment {
  readonly cluster: string;
  readonly name: string;
  readonly desired: Assigned;
}

export interface Advance {
  readonly rollout: RolloutRow;
  /** Those that changed. */
  readonly targets: readonly TargetRow[];
  readonly assignments: readonly Assignment[];
  /** Syncs that are gone from their clusters: their rows go too. */
  readonly removals: readonly SyncRow[];
  /** Renderings the next targets wait for and this subject has not asked for yet. */
  readonly requests: readonly RenderingRequest[];
  /** Look again at once: a stage or the rollout was completed, or there are slots for more than were given. */
  readonly again: boolean;
}

export interface RenderingRequest {
  readonly input: string;
  /** Name of the Source that has the artifact. */
  readonly source: string;
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: RenderOptions;
}
