/** What the planner writes, and nobody else: units, contents, legs, slots, targets, arrivals, and the requests for renderings. */

import type { SpecialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import type { ApplyOptions, TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { BuildOptions, RenderOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

/** A Source of the subject's namespace, pinned to a revision and its artifact. */
export interface PinnedSource {
  readonly source: string;
  readonly revision: string;
  readonly artifactDigest: string;
  /** Digest of what is taken of it, where that is not all. */
  readonly counts?: string | undefined;
}

/** What one template means in a plan. */
export interface PlannedTemplate extends PinnedSource, SpecialisationFields {
  readonly name: string;
  /** Other Sources that it has files of values from, or an override of it has. */
  readonly besides?: readonly PinnedSource[] | undefined;
  readonly path: string;
  readonly render?: RenderOptions;
  readonly apply: ApplyOptions;
  /** Taken away from clusters, by an override. */
  readonly disabled?: boolean | undefined;
  readonly overrides?: readonly PlannedOverride[] | undefined;
}

/** As in the template; `detect` is for a folder of another kind than the template's. */
export interface PlannedOverride extends Omit<TemplateOverride, "render"> {
  readonly render?: RenderOptions | "detect" | undefined;
}

/** What a content takes its clusters to. */
export interface Plan {
  readonly templates: readonly PlannedTemplate[];
  /** The subject itself goes: everything of it is deleted. */
  readonly deletion?: "delete";
  /** `sha256:<hex>` over both, without what only names a commit. */
  readonly planHash: string;
}

/**
 * The states of a target; exactly one at a time, and their counts sum to what was sealed.
 * `Waiting`: its turn has not come; `Rendering`: its rendering was asked for; `Assigned`: it has a slot, `Applying` and
 * `Verifying` are what its worker says meanwhile, and never counted; `Succeeded`, `Unchanged`, `Failed`: done;
 * `Unreachable`: has no slot, and waits again when it answers; `Superseded`: a newer content took over; `Skipped`: left the stage.
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

/** What of a template's options goes by the cluster. */
export interface BoundInputs {
  /** As `1.34`. */
  readonly kubeVersion?: string;
  /** By text of the template, what its expressions come to. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Likewise, of those that come to no text: as JSON has them. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** By name of the parameter. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** `targetNamespace`. */
  readonly namespace?: string;
}

/** What one template is rendered from on one cluster, or why that cannot be said. */
export type TargetInput =
  | {
      readonly digest: string;
      readonly path: string;
      /** Places of the template's overrides that are for the cluster. */
      readonly overrides?: readonly number[];
      readonly bound?: BoundInputs;
    }
  /** It is not given the template. */
  | { readonly disabled: true }
  | { readonly problem: string };

/** A target as it was sealed; kept in a blob. */
export interface SnapshotTarget {
  readonly cluster: string;
  readonly uid: string;
  /** Of each template, in the content's order. */
  readonly inputs: readonly TargetInput[];
}

/** A content going through one stage. Sealed anew, it is another leg with the same content and stage. */
export interface StageRunRef {
  readonly rollout: number;
  readonly stage: string;
  readonly snapshot: number;
}

export interface StageRecord {
  readonly name: string;
  /** The content that passed it last: what its clusters want. */
  readonly current?: number;
  /** The leg that is going through it. */
  readonly updatingTo?: StageRunRef;
  /** The one that passed it last. */
  readonly passed?: StageRunRef;
  /** Clusters that are its members now. */
  readonly members: number;
  /** Slots of its legs, also of those that another one took the place of. */
  readonly changing: number;
  /** Slots of clusters that came to it; absent where a version wrote it that did not count them. */
  readonly catchingUp?: number;
  /** Catch-ups that failed since the stage passed a content last; those that could not be rendered are not counted. */
  readonly failedCatchUps: number;
  /** An edit put a stage before it that has not passed what goes through it: that waits. */
  readonly ahead?: true;
  /** A stage before it was removed: of the contents up to `upTo` it takes only those that had passed that stage. */
  readonly bar?: { readonly stage: string; readonly above: number; readonly upTo: number };
}

/** One content as far as stages are told of it. */
export interface LedgerEntry {
  readonly number: number;
  /** Equal ones need no new content; see `planIdentity`. */
  readonly identity: string;
  readonly revision: string;
  readonly at: string;
}

/** From the first of their revisions to the last. */
export interface Skipped {
  readonly count: number;
  readonly from: string;
  readonly to: string;
}

/**
 * Work on many clusters that is done in pages, one transaction each:
 * `catchUp`: clusters that joined or moved to another stage; `leave`: those that are no longer selected;
 * `retry`: targets of a leg that failed, or arrivals, get another turn;
 * `restore`: targets of a leg that lost what it, or one before it, took away come once more, for it is wanted again;
 * `clear`: a stage passed a content, and those that nothing came of as arrivals were judged with it; `check`: every Sync of the members is looked at;
 * `rename`: what clusters have in a stage goes by its new name.
 */
export type Job =
  | { readonly do: "catchUp" | "leave"; readonly clusters: string; readonly at: number }
  | { readonly do: "retry"; readonly stageRun?: StageRunRef; readonly after?: string }
  | { readonly do: "restore"; readonly stageRun: StageRunRef; readonly from: number; readonly at?: number }
  | { readonly do: "clear"; readonly stage: string; readonly after?: string }
  | { readonly do: "check"; readonly number: number; readonly at: number }
  | { readonly do: "rename"; readonly stage: string; readonly to: string; readonly after?: string };

/** How far a `reconcile` has been answered. */
export interface Checking {
  readonly number: number;
  /** When it was passed on, or could go on. */
  readonly since: string;
  /** Members, in their order, that have been looked at; how these were is counted. */
  readonly checked: number;
  /** The most that they ever were: when members become others they are counted anew. */
  readonly most: number;
  readonly counts: Readonly<Record<"ready" | "changing" | "failed" | "unreachable" | "waiting", number>>;
}

/**
 * How many of the arrivals that wait do so for anything but a slot, since all of them were looked at: for a freeze, by its
 * name; for their renderings; for an attempt that goes on; or by its stage's own bound.
 */
export interface CatchUpsHeld {
  readonly frozen: Readonly<Record<string, number>>;
  readonly rendering: number;
  readonly worker: number;
  /** By stage. */
  readonly bound?: Readonly<Record<string, number>>;
  /** None goes on by itself, but for a rendering that is done, nor is read before this is another: freezes, the members, what stages take, and which are full. */
  readonly as?: string;
}

/** `changing` are slots that no stage counts. `away` is absent where there are none. */
export type CatchUpCounts = Readonly<Record<"waiting" | "changing" | "failed", number>> & { readonly away?: number };

/** A subject's one row: its version is a condition of every transaction of the planner. */
export interface RolloutStateRow extends Row {
  readonly type: "RolloutState";
  readonly owner: Owner;
  /** Of the object: one of the same name that comes later goes on with its numbers, and with nothing else. */
  readonly uid: string;
  /** Number of the newest content; 0 before the first. */
  readonly last: number;
  /** Legs that were ever sealed. */
  readonly snapshots: number;
  /** As the spec that was seen last has them, in order. */
  readonly stages: readonly StageRecord[];
  /** The newest content that a stage had passed which is no more: its clusters may have it, and no stage be on it yet. */
  readonly former?: number;
  readonly catchUps: CatchUpCounts;
  readonly catchUpsHeld?: CatchUpsHeld;
  /** When a cluster that came failed, or did not answer, last. */
  readonly catchUpEndedAt?: string;
  /** Every content that a stage is on or moves to, and some more, the newest first. */
  readonly ledger: readonly LedgerEntry[];
  /** Numbers of the contents that are in it no more, until their rows are collected. */
  readonly past?: readonly number[];
  /** What is wanted and no stage has taken yet. */
  readonly desired?: Pick<LedgerEntry, "identity" | "revision">;
  /** Contents that were wanted since the newest was taken, and are no more. */
  readonly skipped?: Skipped;
  /** Templates that were ever assigned and may be on a cluster still. */
  readonly templates: readonly string[];
  /**
   * What `members` was computed from.
   * `unread`: some of the clusters that may be members, too: only a newer version can read what they are.
   */
  readonly selected?: { readonly by: string; readonly fleet: string; readonly unread?: readonly string[] };
  /** Key of the blob with the clusters that are selected, each in its stage. */
  readonly members?: string;
  /** Clusters that are named, and were not registered then. */
  readonly missing?: readonly string[];
  /** Some of those that stay as they were, because only a newer version can read their rows. */
  readonly unreadable?: readonly string[];
  /** No list that it or its legs name was stored before, and no artifact that its contents name much before. */
  readonly blobsAt?: string;
  /** Grows with every list of members. */
  readonly membersVersion: number;
  /** Grows when the inputs of a member change: that is a new content. */
  readonly inputsVersion: number;
  readonly jobs: readonly Job[];
  /** The end of a deletion: how many of a list of clusters were looked at whether something is left there. */
  readonly sweep?: { readonly clusters: string; readonly at: number };
  /** Stages, and for arrivals "", that were given slots, the last one last. */
  readonly served?: readonly string[];
  /** No slot has used up its deadline before. */
  readonly deadline?: string;
  /** By then workers have begun whatever was assigned, at the pace that `queuedUntil` of `due.ts` goes by. */
  readonly queuedUntil?: string;
  /** Number of the newest `reconcile` and `refresh` that were taken up. */
  readonly handledReconcile?: number;
  readonly handledRefresh?: number;
  readonly checking?: Checking;
  /** Legs that say another thing since the last step: whoever finds them so tells people again, for that step may have died. */
  readonly pendingReports?: readonly StageRunRef[];
  /** What was seen for certain when a `reconcile` was over, or was read of a cluster: indexes may lag behind it. */
  readonly lately?: Readonly<Record<"failed" | "unreachable" | "changing", number>> & { readonly at: string };
}

export interface RolloutRow extends Row {
  readonly type: "Rollout";
  readonly owner: Owner;
  readonly number: number;
  readonly identity: string;
  readonly plan: Plan;
  readonly revision: string;
  /** What the first stage was on when it took this. */
  readonly fromRevision?: string;
  readonly trigger: "plan" | "inputs" | "deletion" | "recover";
  readonly createdAt: string;
  /** Of what it follows from: what it is assigned to days later follows from that, too. */
  readonly correlationId?: string;
  /** Contents that were wanted before it and that no stage took. */
  readonly skipped?: Skipped;
}

export const stalledPhases = ["Halted", "NothingVerified", "TooManyUnreachable"] as const;
export type StageRunPhase = "Updating" | (typeof stalledPhases)[number] | "Passed" | "Superseded";

export interface Transition {
  readonly at: string;
  readonly phase: StageRunPhase;
  readonly reason: string;
  readonly message: string;
}

export interface StageRunRow extends Row, StageRunRef {
  readonly type: "StageRun";
  readonly owner: Owner;
  readonly phase: StageRunPhase;
  readonly reason: string;
  readonly message: string;
  /** What was sealed: its targets in their order, in blobs, each with the order of its first. */
  readonly size: number;
  readonly pages: readonly { readonly key: string; readonly first: number }[];
  /** `membersVersion` of the unit when it was sealed. */
  readonly membersVersion: number;
  /** Order of the first target that was never looked at. */
  readonly next: number;
  /**
   * Orders of those that were looked at: each is in one of these lists at most, and in none once it has a slot or a row,
   * but for the last. They wait for their renderings; for an attempt that goes on; had a turn before.
   */
  readonly rendering: readonly number[];
  readonly aside: readonly number[];
  readonly returned: readonly number[];
  /** Orders of those that were seen to be ready with it before it was sealed anew, from the first to before the last. */
  readonly verified?: { readonly from: number; readonly to: number };
  /** Those that wait for a freeze, by its name; and as of which freezes and members. */
  readonly frozen?: { readonly as: string; readonly by: Readonly<Record<string, readonly number[]>> };
  /** They have a row, and failed: they could not be rendered. */
  readonly unrendered: readonly number[];
  readonly counts: Readonly<Record<TargetState, number>>;
  /** Failed targets that were not ready before: against no budget, and no evidence. */
  readonly preexistingFailures: number;
  /** The first ten: those that count against the budget stand before the preexisting ones. */
  readonly failures: readonly {
    readonly cluster: string;
    readonly reason: string;
    readonly preexisting?: true;
  }[];
  /** Targets that do not answer: the last ten by name. */
  readonly away: readonly string[];
  /** A `reconcile` asked then for what failed. */
  readonly retriedAt?: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  /** Targets of an earlier snapshot left before this content was verified in the stage. */
  readonly left?: true;
  /** Templates that it was to take away and are wanted again. */
  readonly putBack?: readonly string[];
  /** The content that took its place. */
  readonly supersededBy?: number;
  readonly transitions: readonly Transition[];
}

/** The right to be changing: from the assignment until the attempt is settled and no worker writes for it any more. */
export interface SlotRow extends Row {
  readonly type: "Slot";
  readonly cluster: string;
  /** What it was given for; absent for an arrival, and for one whose assignment was taken back. */
  readonly stageRun?: StageRunRef;
  readonly order?: number;
  readonly stage: string;
  readonly rollout: number;
  /** Attempt number of each Sync that was assigned, by the Sync's name. */
  readonly attempts: Readonly<Record<string, number>>;
  /** An arrival that was given what it lost of this content. */
  readonly restores?: number;
  /** Assignments of the same target that are still to be written. */
  readonly unwritten?: true;
  readonly since: string;
  /** Settled. A worker that took the lease with this fence, or before, may still be writing. */
  readonly releasing?: { readonly fence: number };
}

/** What became of a target. */
export interface TargetRow extends Row {
  readonly type: "Target";
  readonly stageRun: StageRunRef;
  readonly order: number;
  readonly cluster: string;
  readonly state: TargetState;
  readonly reason: string;
  readonly attempts: Readonly<Record<string, number>>;
  readonly assignedAt?: string;
  readonly endedAt: string;
  /** Not ready before it was assigned: shown, against no budget. */
  readonly preexisting?: true;
}

/** A cluster that is to be brought to what its stage is on, outside the legs. */
export interface CatchUpRow extends Row {
  readonly type: "CatchUp";
  readonly cluster: string;
  readonly why: "joined" | "returned";
  /** In which it failed, or does not answer. */
  readonly stage?: string;
  /** What it lost of this content and is wanted comes before what its stage is on. */
  readonly rollout?: number;
  readonly since: string;
  /** Why it failed. */
  readonly reason?: string;
}

export interface SourceRef {
  readonly namespace: string;
  readonly name: string;
  /** One of those of which it has, or had, the artifact. */
  readonly revision?: string | undefined;
  /** Digest of the artifact, where that is another than the one that is rendered: it has files of values. */
  readonly besides?: string | undefined;
}

export interface RenderingRow extends Row {
  readonly type: "Rendering";
  /** `sha256:<hex>` of what follows. */
  readonly input: string;
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
  readonly engine: string;
  readonly state: "Pending" | "Done" | "Failed";
  /** Of what failed for a reason that may not be the input's: when it is tried again. */
  readonly retryAt?: string;
  readonly requestedAt: string;
  /** When a renderer began with it first. */
  readonly begunAt?: string;
  /** Who is at it, and until when nobody else needs to be. */
  readonly claim?: { readonly by: string; readonly until: string };
  /** Subjects to tell when it is no longer Pending, or no longer Failed. */
  readonly waiting?: readonly Owner[];
  /** Sources that may have its artifacts. */
  readonly sources?: readonly SourceRef[];
  readonly digest?: string;
  readonly doneAt?: string;
  /** When somebody asked for it since: neither its bytes nor its artifact were stored much before. */
  readonly keptAt?: string;
  /** How often it was found lost: it is not made again more often than a back-off allows. */
  readonly losses?: number;
  readonly objects?: number;
  /** What was left out of it, and why, in words. */
  readonly leftOut?: readonly string[];
  readonly failure?: { readonly code: string; readonly message: string; readonly permanent: boolean };
  readonly tries: number;
  /** Tries that ended in a way that may be the input's fault, or did not end. */
  readonly strikes?: number;
}
