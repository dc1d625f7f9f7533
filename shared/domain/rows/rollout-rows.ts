/** What the planner writes, and nobody else: heads, rollouts, targets, and the requests for renderings. */
import type { ClusterCount } from "#shared/domain/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/domain/kinds/sync-group.ts";
import type { ApplyOptions, RenderOptions } from "#shared/domain/kinds/sync-template.ts";
import type { Subject } from "#shared/domain/rows/keys.ts";
import type { Row } from "#shared/domain/rows/row.ts";

/** What one template means in a plan: pinned to a revision and its artifact. */
export interface PlannedTemplate {
  readonly name: string;
  readonly source: string;
  readonly revision: string;
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: RenderOptions;
  readonly apply: ApplyOptions;
}

export interface Plan {
  readonly templates: readonly PlannedTemplate[];
  /** Templates of the previous plan that are gone: their Syncs are deleted from their clusters. */
  readonly removed: readonly string[];
  /** `delete` or `orphan` when the subject itself goes. */
  readonly farewell?: "delete" | "orphan";
  /** `sha256:<hex>` over templates and removals: what this rollout takes its clusters to. */
  readonly contentHash: string;
}

export interface HeadRow extends Row {
  readonly type: "Head";
  readonly subject: Subject;
  /** Number of the newest rollout; 0 before the first. */
  readonly last: number;
  /** The rollout that is Planning, Sealed, Running or Halted. */
  readonly open?: number;
  /** What the newest rollout planned; equal ones need no new rollout. */
  readonly contentHash?: string;
  readonly membershipHash?: string;
  /** Templates that have ever been assigned and not been removed since. */
  readonly templates: readonly string[];
  /** The rollout that completed last: what joiners get. */
  readonly completed?: { readonly number: number; readonly plan: Plan };
  readonly checkedAt: string;
}

/**
 * The states of a target; exactly one at a time, and their counts sum to the clusters selected.
 * `Waiting`: its turn has not come; `Rendering`: its rendering was asked for; `Assigned`: the worker was told;
 * `Applying`, `Verifying`: the worker said so; `Succeeded`, `Unchanged`, `Failed`: done;
 * `Unreachable`: holds no slot, and waits again; `Superseded`: a newer rollout took over; `Skipped`: left the fleet.
 */
export const targetStates = [
  "Waiting",
  "Rendering",
  "Assigned",
  "Applying",
  "Verifying",
  "Succeeded",
  "Unchanged",
  "Failed",
  "Unreachable",
  "Superseded",
  "Skipped",
] as const;
export type TargetState = (typeof targetStates)[number];

export interface TargetRow extends Row {
  readonly type: "Target";
  readonly order: number;
  readonly cluster: string;
  readonly stage: number;
  readonly state: TargetState;
  readonly reason: string;
  /** Distinct input of each template, in the plan's order. */
  readonly inputs: readonly string[];
  /** Attempt number of each Sync that was assigned, by template name. */
  readonly attempts: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  /** The seconds of the deadline spent so far in earlier assignments. */
  readonly endedAt?: string;
  /** Not ready before it was assigned: shown, against no budget. */
  readonly preexisting?: true;
}

export interface RolloutStage {
  readonly name: string;
  readonly maxConcurrent?: ClusterCount;
  readonly size: number;
  /** Orders of its targets: first and last; an empty stage has first > last. */
  readonly first: number;
  readonly last: number;
  /** The next order that was never looked at. */
  readonly cursor: number;
  readonly counts: Readonly<Record<TargetState, number>>;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

export type RolloutPhase = "Planning" | "Sealed" | "Running" | "Complete" | "Halted" | "Superseded";

export interface Transition {
  readonly at: string;
  readonly phase: RolloutPhase;
  readonly reason: string;
  readonly message: string;
}

export interface RolloutRow extends Row {
  readonly type: "Rollout";
  readonly subject: Subject;
  readonly number: number;
  readonly phase: RolloutPhase;
  readonly reason: string;
  readonly message: string;
  readonly plan: Plan;
  readonly strategy: RolloutStrategy;
  readonly membershipHash: string;
  /** Key of the blob with the ordered clusters. */
  readonly members: string;
  readonly size: number;
  /** While Planning: targets written so far. */
  readonly planned: number;
  readonly stages: readonly RolloutStage[];
  /** Index of the stage that is moving. */
  readonly stage: number;
  /** Orders of the targets that hold a slot or wait for their rendering. */
  readonly outstanding: readonly number[];
  /** Orders of the targets that are Unreachable and wait to come back. */
  readonly parked: readonly number[];
  /** Rendering digests of the distinct inputs seen so far. */
  readonly renderings: Readonly<Record<string, string>>;
  readonly trigger: "revision" | "spec" | "membership" | "deletion";
  readonly revision: string;
  readonly fromRevision?: string;
  readonly subjectLine: string;
  readonly createdAt: string;
  readonly endedAt?: string;
  readonly supersededBy?: number;
  /** Failed targets, first come first, at most ten. */
  readonly failures: readonly { readonly cluster: string; readonly reason: string }[];
  readonly transitions: readonly Transition[];
}

export interface RenderingRow extends Row {
  readonly type: "Rendering";
  /** `sha256:<hex>` of what follows. */
  readonly input: string;
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: RenderOptions;
  readonly engine: string;
  readonly state: "Pending" | "Done" | "Failed";
  readonly requestedAt: string;
  /** Who is at it, and until when nobody else needs to be. */
  readonly claim?: { readonly by: string; readonly until: string };
  readonly digest?: string;
  readonly objects?: number;
  readonly failure?: { readonly code: string; readonly message: string; readonly permanent: boolean };
  readonly tries: number;
}
