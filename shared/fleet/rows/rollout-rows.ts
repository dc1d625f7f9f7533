/** What the planner writes, and nobody else: heads, rollouts, targets, and the requests for renderings. */

import type { ClusterCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";

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
  /** `sha256:<hex>` over templates and farewell: what this rollout takes its clusters to, wherever they come from. */
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
  /** The rollout that completed last. */
  readonly completed?: number;
  /** When it did. */
  readonly completedAt?: string;
  /** Key of the blob with the members of the newest rollout's selection, for finding who left. */
  readonly members?: string;
  /** Clusters that completed rollouts left behind, unreachable or deselected: brought up when they answer. */
  readonly behind: readonly string[];
  /** Of the deselected, those whose rows could not be read: what is assigned there is still to be forgotten. */
  readonly unforgotten?: readonly string[];
  /** Clusters that completed rollouts could assign nothing, because it could not be rendered for them. */
  readonly unassigned?: readonly string[];
  /** What was seen for certain when the last rollout or `reconcile` was over: indexes may lag behind it. */
  readonly lately?: { readonly at: string; readonly failed: number; readonly unreachable: number };
  /** Number of the newest `reconcile` that was passed on. */
  readonly handledReconcile?: number;
  /** Number of the newest one that started a halted rollout over; it is passed on when that is complete. */
  readonly restartedFor?: number;
  /** Number of the newest `recover` that a rollout was begun for. */
  readonly recoveredFor?: number;
  /** That `reconcile`, while not every cluster has been looked at since. */
  readonly looking?: Looking;
}

/** How far a `reconcile` has been answered. */
export interface Looking {
  readonly number: number;
  /** When it was passed on, or could go on. */
  readonly since: string;
  /** Members, in their order, that have been looked at; how these were is counted. */
  readonly looked: number;
  readonly counts: Readonly<Record<"ready" | "changing" | "failed" | "unreachable" | "waiting", number>>;
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

/** What one template is rendered from on one cluster, or why that cannot be said. */
export type TargetInput = { readonly digest: string; readonly path: string } | { readonly problem: string };

export interface TargetRow extends Row {
  readonly type: "Target";
  readonly order: number;
  readonly cluster: string;
  readonly stage: number;
  readonly state: TargetState;
  readonly reason: string;
  /** Of each template, in the plan's order. */
  readonly inputs: readonly TargetInput[];
  /** No longer selected: its Syncs are forgotten, its objects stay. */
  readonly leaving?: true;
  /** Attempt number of each Sync that was assigned, by the Sync's name. */
  readonly attempts: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  readonly endedAt?: string;
  /** Name of the freeze that it waits for. */
  readonly frozen?: string;
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

export interface TargetRef {
  readonly order: number;
  readonly cluster: string;
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
  /** Targets that hold a slot: Assigned, Applying or Verifying. */
  readonly outstanding: readonly TargetRef[];
  /** Targets that are Unreachable and wait to come back. */
  readonly parked: readonly TargetRef[];
  /** Targets that had their turn and wait for another one: they come before those whose turn never came. */
  readonly returned: readonly TargetRef[];
  /** Clusters that left the selection while it ran: looked at again when it is over. */
  readonly left: readonly string[];
  /** Since when the subject is suspended: no deadline runs meanwhile. */
  readonly pausedAt?: string;
  /** Deadlines count from here for targets assigned earlier: the end of the last suspension. */
  readonly resumedAt?: string;
  /** Clusters an earlier rollout left changing: each holds a slot until it settles, or until this time. */
  readonly carried: readonly { readonly cluster: string; readonly until: string }[];
  /** Clusters the subject selects, whether this rollout moves them or not: what percentages are of. */
  readonly selected: number;
  readonly trigger: "plan" | "membership" | "deletion" | "reconcile";
  readonly revision: string;
  readonly fromRevision?: string;
  readonly createdAt: string;
  readonly endedAt?: string;
  readonly supersededBy?: number;
  /** Failed targets, first come first, at most ten. */
  readonly failures: readonly { readonly cluster: string; readonly reason: string }[];
  /** Failed targets that nothing was assigned to: what runs there is what ran before. */
  readonly unassigned?: readonly string[];
  /** Failed targets that were not ready before: against no budget. */
  readonly preexistingFailures: number;
  readonly transitions: readonly Transition[];
}

export interface SourceRef {
  readonly namespace: string;
  readonly name: string;
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
  /** Of what failed for a reason that may not be the input's: when it is tried again. */
  readonly restsUntil?: string;
  readonly requestedAt: string;
  /** Who is at it, and until when nobody else needs to be. */
  readonly claim?: { readonly by: string; readonly until: string };
  /** Subjects to tell when it is no longer Pending, or no longer Failed. */
  readonly waiting?: readonly Subject[];
  /** Sources that may have the artifact. */
  readonly sources?: readonly SourceRef[];
  readonly digest?: string;
  readonly doneAt?: string;
  /** How often it was found lost: it is not made again more often than a back-off allows. */
  readonly losses?: number;
  readonly objects?: number;
  readonly failure?: { readonly code: string; readonly message: string; readonly permanent: boolean };
  readonly tries: number;
  /** Tries that ended in a way that may be the input's fault, or did not end. */
  readonly strikes?: number;
}
