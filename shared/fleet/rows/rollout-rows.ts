/**
 * Rows that only the planner writes: rollout states, rollouts, stage runs, slots, targets, catch-ups, and requests for
 * renderings.
 */

import type { GuardSpec } from "#shared/fleet/kinds/guard-spec.ts";
import type { SpecialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { ApplyOptions, TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { NamedClusters } from "#shared/fleet/rows/named-clusters.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { BuildOptions, RenderOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

/** A Source of the owner's namespace, pinned to a revision and its artifact. */
export interface PinnedSource {
  readonly source: string;
  readonly revision: string;
  readonly artifactDigest: string;
  /** Digest of the used part of the artifact, when not all of it is used. */
  readonly counts?: string | undefined;
  /** The earlier revision that has the artifact, when its used part is that of `revision`. */
  readonly artifactRevision?: string | undefined;
}

/** One template of a plan, with its pinned Sources. */
export interface PlannedTemplate extends PinnedSource, SpecialisationFields {
  readonly name: string;
  /** Other Sources with values files for the template or one of its overrides. */
  readonly besides?: readonly PinnedSource[] | undefined;
  readonly path: string;
  readonly render?: RenderOptions;
  readonly apply: ApplyOptions;
  /** True when an override deletes the template from clusters. */
  readonly disabled?: boolean | undefined;
  readonly overrides?: readonly PlannedOverride[] | undefined;
}

/** An override of the template; `detect` is for a folder of another kind than the template's. */
export interface PlannedOverride extends Omit<TemplateOverride, "render"> {
  readonly render?: RenderOptions | "detect" | undefined;
}

/** The desired state of a rollout, before it is specialised for clusters. */
export interface Plan {
  readonly templates: readonly PlannedTemplate[];
  /** The owner is being deleted: all its Syncs are deleted from clusters. */
  readonly deletion?: "delete";
  /** `sha256:<hex>` over both fields above, without the parts that only name a commit. */
  readonly planHash: string;
}

/**
 * The states of a target. A target has exactly one, and their counts sum to the size of the snapshot.
 * - `Waiting`: its turn has not come; `Rendering`: it waits for its rendering;
 * - `Assigned`: it has a slot; `Applying` and `Verifying` are the worker's report meanwhile, and are never counted;
 * - `Succeeded`, `Unchanged`, `Failed`: done;
 * - `Unreachable`: it has no slot, and waits again when it answers;
 * - `Superseded`: a newer rollout replaced this one; `Skipped`: the cluster left the stage, or a person took it out.
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

/** The part of a template's options that depends on the cluster. */
export interface BoundInputs {
  /** Such as `1.34`. */
  readonly kubeVersion?: string;
  /** Results of the template's expressions, by their text. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Results of expressions that are not texts, as JSON, by their text. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** By name of the parameter. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** `targetNamespace`. */
  readonly namespace?: string;
}

/** The input of one template on one cluster, or the reason why it is unknown. */
export type TargetInput =
  | {
      readonly digest: string;
      readonly path: string;
      /** Positions of the template's overrides that select the cluster. */
      readonly overrides?: readonly number[];
      readonly bound?: BoundInputs;
    }
  /** The cluster does not get the template. */
  | { readonly disabled: true }
  | { readonly problem: string };

/** A target of a snapshot; a blob keeps it. */
export interface SnapshotTarget {
  readonly cluster: string;
  readonly uid: string;
  /** One input for each template, in the order of the rollout's plan. */
  readonly inputs: readonly TargetInput[];
}

/** One rollout going through one stage. A new snapshot of the same rollout and stage is another stage run. */
export interface StageRunRef {
  readonly rollout: number;
  readonly stage: string;
  readonly snapshot: number;
}

/** Digests of the parts of a plan that people approve: they tell in what two plans differ. */
export interface PlanParts {
  /** Number of clusters, and who they are. */
  readonly size: number;
  readonly clusters: string;
  /** The inputs of single clusters, such as values. */
  readonly inputs: string;
  /** Files and options of the templates. */
  readonly files: string;
  /** Templates that are deleted. */
  readonly removed: string;
  readonly gates: string;
  /** The stage's current rollout. */
  readonly current: string;
}

/** A plan that people approve, with its parts. */
export interface AskedPlan {
  readonly planHash: string;
  readonly parts: PlanParts;
}

/** The plan that a stage will ask people to approve, if the rollout reaches it as things are now. */
export interface PlanAhead extends AskedPlan {
  readonly rollout: number;
  /** Digest of the versions that it was made from: it is made again when they change. */
  readonly from: string;
  /** The plan that somebody approved before this one took its place. */
  readonly outdated?: AskedPlan;
}

export interface StageRecord {
  readonly name: string;
  /** People may approve it although an earlier stage has not passed the rollout. */
  readonly gated?: PlanAhead;
  /** The stage's current rollout: the last one that passed the stage. The stage's clusters desire it. */
  readonly current?: number;
  /** The rollout that the stage had before its current one, unless that was rejected. */
  readonly previous?: number;
  /** The stage run in progress. */
  readonly updatingTo?: StageRunRef;
  /** The stage run that passed last. */
  readonly passed?: StageRunRef;
  /** It passed without a cluster, so that nobody was asked for the approval that the stage needs. */
  readonly unasked?: true;
  /** Its current rollout passed after an approval: a rollback gives the stage nothing that never passed it. */
  readonly asks?: true;
  /** Number of clusters that are members now. */
  readonly members: number;
  /** Slots of its stage runs, including superseded ones. */
  readonly changing: number;
  /** Slots of clusters that catch up; absent when a version wrote it that did not count them. */
  readonly catchingUp?: number;
  /** Catch-ups that failed since a rollout last passed the stage; clusters that could not be rendered are not counted. */
  readonly failedCatchUps: number;
  /** An edit put a stage before this one that has not passed the rollout in progress here: the stage run waits. */
  readonly ahead?: true;
  /**
   * A stage before this one was removed: of the rollouts up to `upTo`, this stage only takes those that had passed that
   * stage.
   */
  readonly bar?: { readonly stage: string; readonly above: number; readonly upTo: number };
}

/** The facts about one rollout that stages need. */
export interface LedgerEntry {
  readonly number: number;
  /** Plans with equal identities need no new rollout; see `planIdentity`. */
  readonly identity: string;
  readonly revision: string;
  readonly at: string;
  /** A stage has passed it; absent as well when a version wrote it that did not record that. */
  readonly passed?: true;
  /** Names of the stages that have passed it; absent when a version wrote it that did not record them. */
  readonly passedIn?: readonly string[];
  /** A rollback: the number of the rollout that it goes back to. No stage takes it from the stage before. */
  readonly rollback?: number;
  /** Nobody asked for the rollback: a rollout had failed in this stage, and other stages keep what they have. */
  readonly takesBack?: { readonly rollout: number; readonly stage: string };
}

/** A rollout that somebody rejected, or one with the same plan: it is not assigned again. */
export interface RejectedRollout {
  readonly rollout: number;
  readonly by: string;
  readonly at: string;
  readonly reason?: string;
  /** `planHash` of what it brought in; absent when it only brought other inputs. A newer rollout with this plan is rejected as well. */
  readonly planHash?: string;
  /** The rejected rollout whose plan this one has. */
  readonly like?: number;
}

/** Skipped rollouts, from the first of their revisions to the last. */
export interface Skipped {
  readonly count: number;
  readonly from: string;
  readonly to: string;
}

/**
 * Work on many clusters that is done in pages, one transaction each.
 * - `catchUp`: clusters that joined, or moved to another stage, or, of those that are `behind`, the ones with something
 *   older than they may have again; `leave`: clusters that are no longer selected;
 * - `retry`: failed targets of a stage run, or failed catch-ups, get another turn;
 * - `skip`: failed and unreachable targets of a stage run that somebody skipped are taken out of it;
 * - `restore`: targets of a stage run that lost templates which are desired again get them back;
 * - `clear`: a rollout passed the stage, and the unfinished catch-ups were judged with it;
 * - `check`: every Sync of the members, or of the targets of a stage run, is checked;
 * - `rename`: rows of a renamed stage get its new name.
 */
export type Job =
  | { readonly do: "catchUp"; readonly clusters: string; readonly at: number; readonly only?: "behind" }
  | { readonly do: "leave"; readonly clusters: string; readonly at: number }
  | {
      readonly do: "retry";
      readonly stageRun?: StageRunRef;
      readonly only?: NamedClusters;
      /** Also of those that people took out. */
      readonly takenOut?: true;
      readonly after?: string;
    }
  | { readonly do: "skip"; readonly stageRun: StageRunRef; readonly only: NamedClusters; readonly after?: string }
  | { readonly do: "restore"; readonly stageRun: StageRunRef; readonly from: number; readonly at?: number }
  | { readonly do: "clear"; readonly stage: string; readonly after?: string }
  | { readonly do: "check"; readonly number: number; readonly at: number; readonly stageRun?: StageRunRef }
  | { readonly do: "rename"; readonly stage: string; readonly to: string; readonly after?: string };

/** Progress of a `reconcile`. */
export interface Checking {
  readonly number: number;
  /** When the request was passed on to the clusters, or could continue. */
  readonly since: string;
  /** Number of members, in their order, that have been checked; their states are counted. */
  readonly checked: number;
  /** The largest counts so far: a change of members starts the count again. */
  readonly most: number;
  readonly counts: Readonly<Record<"ready" | "changing" | "failed" | "unreachable" | "waiting", number>>;
  /** Zones that are down, in words: their clusters cannot be checked. */
  readonly zones?: readonly string[];
}

/**
 * The causes that hold a cluster back from its turn, besides a slot, and when its turn comes again:
 * - `cordon`: when a cluster is cordoned or uncordoned, or a cordon ends (`letThaw`; for catch-ups `heldAs`);
 * - `freeze`: when the freezes or the members change (likewise);
 * - `window`, a closed one: when a window is written, opens or closes (likewise);
 * - `bound`, the `maxConcurrent` of its stage, for catch-ups only: when the stage is no longer full (`heldAs`);
 * - `worker`, an earlier attempt that may still write: each call checks it again;
 * - `rendering`, one that does not exist yet: each call checks targets again, and catch-ups after a rendering.
 */
export type HoldCause = "cordon" | "freeze" | "window" | "bound" | "worker" | "rendering";

/** Clusters that one cause holds back: orders of targets in a snapshot, or the number of waiting catch-ups. */
export interface Hold<Clusters extends number | readonly number[] = readonly number[]> {
  readonly cause: HoldCause;
  /** Name of the cordoned cluster, of the freeze, of the windows over the cluster, or of the stage with the bound. */
  readonly name?: string;
  readonly clusters: Clusters;
}

/** Waiting catch-ups that are held back. All catch-ups were checked for this. */
export interface CatchUpsHeld {
  readonly holds: readonly Hold<number>[];
  /**
   * The digest that `heldAs` computes. While it is the same, the catch-ups are not read again, unless a rendering is
   * finished.
   */
  readonly as?: string;
}

/** `changing` are slots that no stage counts. `away` is absent when it is zero. */
export type CatchUpCounts = Readonly<Record<"waiting" | "changing" | "failed", number>> & { readonly away?: number };

/**
 * The kinds of changes that a guard counts: clusters join, clusters leave the selection, templates are dropped, objects
 * of a Sync would be pruned.
 */
export type GuardedKind = "additions" | "deletions" | "templates" | "objects";

/** A change that a guard withholds until it is approved, or the window has room for it. */
export interface WithheldChange {
  readonly kind: GuardedKind;
  /** Number of clusters, and of those that joined or lost something within the window before. Of objects: of one Sync. */
  readonly count: number;
  readonly before: number;
  /** Number of clusters that the guard allows within the window, and the members at its start. Of objects likewise. */
  readonly allowed: number;
  readonly members: number;
  /** Names of the templates, or the first names of the clusters. */
  readonly names: readonly string[];
  /** An approval names it; it covers all names. */
  readonly hash: string;
  readonly since: string;
  /** The window has room for it then; absent when it never has. */
  readonly until?: string;
  /** For objects: the Sync's name, and the rollout that would prune them. `names` are the clusters where it failed. */
  readonly sync?: string;
  readonly rollout?: number;
}

/** Clusters that joined or lost something at a time, and the number of members before. */
export interface GuardedChange {
  readonly at: string;
  readonly members: number;
  readonly added: number;
  readonly removed: number;
}

/** The changes that a guard counts and withholds. */
export interface GuardState {
  /** The guard of the spec that the planner read last. */
  readonly spec?: GuardSpec;
  /** Guards of earlier specs: each is in force until its time. */
  readonly former: readonly (GuardSpec & { readonly until: string })[];
  /** Changes within the window that needed no approval, the oldest first. */
  readonly changes: readonly GuardedChange[];
  readonly withheld: readonly WithheldChange[];
  /** Numbers of the approvals that were used: each lets one change through. */
  readonly used: readonly number[];
  /** Hashes of the prunes that were approved, each for one rollout on every cluster. */
  readonly mayPrune?: readonly { readonly hash: string; readonly rollout: number }[];
}

/** A zone that the owner's planner found down. */
export interface DownZone {
  readonly zone: string;
  /** When it was found down; absent from versions that do not say it. */
  readonly since?: string;
  /** When a worker of it last said that it ran, before that. */
  readonly workedAt?: string;
}

/** The one row of an owner's rollouts: its version is a condition of every transaction of the planner. */
export interface RolloutStateRow extends Row {
  readonly type: "RolloutState";
  readonly owner: Owner;
  /** Uid of the object: a later object of the same name continues with its numbers only. */
  readonly uid: string;
  /** Number of the newest rollout; 0 before the first. */
  readonly last: number;
  /** Number of snapshots that were ever taken. */
  readonly snapshots: number;
  /** The stages of the spec that the planner read last, in order. */
  readonly stages: readonly StageRecord[];
  /**
   * The newest rollout that a stage had passed before it was removed, or before its name got other clusters: its clusters
   * may have it, although it is no stage's current rollout.
   */
  readonly former?: number;
  readonly catchUps: CatchUpCounts;
  readonly catchUpsHeld?: CatchUpsHeld;
  /** When a catch-up last failed or did not answer. */
  readonly catchUpEndedAt?: string;
  /** Every rollout that a stage has or updates to, and some more, the newest first. */
  readonly ledger: readonly LedgerEntry[];
  /** Rollouts that no stage and no cluster gets, the newest rejection last. */
  readonly rejected?: readonly RejectedRollout[];
  /** Number of the newest act of `operations.rejections` that the planner has carried out. */
  readonly handledRejection?: number;
  /** Number of the newest rollback that the planner has started. */
  readonly handledRollback?: number;
  /** Numbers of rollouts that left the ledger, until their rows are deleted. */
  readonly past?: readonly number[];
  /** The desired plan that no stage has taken yet. */
  readonly desired?: Pick<LedgerEntry, "identity" | "revision">;
  /** Plans that were desired since the newest rollout was taken, and are desired no longer. */
  readonly skipped?: Skipped;
  /** Templates that were ever assigned and may still be on a cluster. */
  readonly templates: readonly string[];
  /**
   * The selection and the fleet's versions from which `members` was computed.
   * `unread` names clusters that may be members as well: only a newer version can read their rows.
   */
  readonly selected?: { readonly by: string; readonly fleet: string; readonly unread?: readonly string[] };
  /** Key of the blob with the selected clusters, each in its stage. */
  readonly members?: string;
  /** Named clusters that were not registered then. */
  readonly missing?: readonly string[];
  /** Some of the clusters that stay as they were, because only a newer version can read their rows. */
  readonly unreadable?: readonly string[];
  /**
   * A time before which no list of this row or its stage runs was stored, and, within some tolerance, no artifact of
   * its rollouts.
   */
  readonly blobsAt?: string;
  /** Grows with every list of members. */
  readonly membersVersion: number;
  /** Grows when the inputs of a member change, which makes a new rollout. */
  readonly inputsVersion: number;
  /** Absent while the owner has no guard. */
  readonly guard?: GuardState;
  readonly jobs: readonly Job[];
  /** The end of a deletion: the number of clusters of a list that were checked for leftovers. */
  readonly sweep?: { readonly clusters: string; readonly at: number };
  /** Stages that got slots, the last one last; "" stands for catch-ups. */
  readonly served?: readonly string[];
  /** No slot reaches its deadline before this time. */
  readonly deadline?: string;
  /**
   * Zones that were found down, each with the time when a worker of it last ran, if any did. Until one runs again, an
   * assignment of a cluster there is unreachable at once.
   */
  readonly downZones?: readonly DownZone[];
  /** No zone is found down before this time: the planner itself was not called for a while, and neither were the workers. */
  readonly zonesDownFrom?: string;
  /** Workers have begun every assignment by this time, at the pace of `queuedUntil` in `due.ts`. */
  readonly queuedUntil?: string;
  /** Number of the newest `reconcile` and `refresh` that the planner has started. */
  readonly handledReconcile?: number;
  readonly handledRefresh?: number;
  /** Number of the newest act of `operations.gates` that the planner has started. */
  readonly handledAct?: number;
  readonly checking?: Checking;
  /**
   * Stage runs that changed in the last step. The next step reports them again, because that step may have died before
   * its report.
   */
  readonly pendingReports?: readonly StageRunRef[];
  /** Counts that were read from rows, at the end of a `reconcile` or of single clusters: indexes may lag behind them. */
  readonly lately?: Readonly<Record<"failed" | "unreachable" | "changing", number>> & {
    readonly at: string;
    /** Zones that are down, in words: their clusters were not checked. */
    readonly zones?: readonly string[];
  };
}

export interface RolloutRow extends Row {
  readonly type: "Rollout";
  readonly owner: Owner;
  readonly number: number;
  readonly identity: string;
  readonly plan: Plan;
  readonly revision: string;
  /** Revision of the first stage's current rollout when it took this one. */
  readonly fromRevision?: string;
  readonly trigger: "plan" | "inputs" | "deletion" | "recover" | "rollback";
  /** Of a rollback: the number of the rollout whose plan and inputs it has. */
  readonly rollback?: number;
  /** Names of templates that it deletes although the spec has them, because a person asked for that. */
  readonly deletes?: readonly string[];
  /** Present when nobody asked for the rollback. */
  readonly takesBack?: LedgerEntry["takesBack"];
  /** The principal that asked for the rollback, and its reason; Starling itself when a rollout had failed. */
  readonly asked?: { readonly by: string; readonly reason?: string };
  readonly createdAt: string;
  /** Correlation id of the cause; assignments that follow days later have it as well. */
  readonly correlationId?: string;
  /** Plans that were desired before this one and that no stage took. */
  readonly skipped?: Skipped;
}

/** A stage run in one of these phases stands still: it stays in its stage, and a newer rollout may replace it. */
export const stalledPhases = ["Halted", "NothingVerified", "TooManyUnreachable", "GateFailed", "Rejected"] as const;
/** A stage run in one of these phases is over, and keeps its phase. */
const endedPhases = ["Passed", "Superseded"] as const;
export type EndedPhase = (typeof endedPhases)[number];
/**
 * `Gated`: the gates before its targets have not passed yet, and nothing is assigned. `Baking`: its targets are done within
 * the budgets, and the gates after them have not passed yet.
 */
export type StageRunPhase = "Gated" | "Updating" | "Baking" | (typeof stalledPhases)[number] | EndedPhase;

export function isStalledPhase(phase: string | undefined): boolean {
  return stalledPhases.some((stalled) => stalled === phase);
}

export function isEndedPhase(phase: string | undefined): phase is EndedPhase {
  return endedPhases.some((ended) => ended === phase);
}

export interface Transition {
  readonly at: string;
  readonly phase: StageRunPhase;
  readonly reason: string;
  readonly message: string;
}

/** The gates of a stage, as its snapshot recorded them: a later edit of the spec does not change them. */
export type StageGates = Pick<RolloutStrategy["stages"][number], "before" | "after">;

/** A freeze during a bake. One that covers every target stops the clock. */
export interface BakeFreeze {
  readonly name: string;
  readonly at: string;
  /** Whether it covered every target when the planner first saw it. */
  readonly covers: boolean;
  /** When it ended; absent while it is in force. */
  readonly to?: string;
}

/** How far a stage run with a bake has come. */
export interface Bake {
  /** When its targets first met the budgets. Nothing but a failed bake begins it again. */
  readonly from: string;
  /** Seconds of all suspensions of the owner until then. */
  readonly stood: number;
  /** The freezes that were in force at some time of the bake. */
  readonly freezes?: readonly BakeFreeze[];
  /** The check of every target at the end: when it was requested, and the number of targets that were seen since. */
  readonly check?: { readonly since: string; readonly seen: number };
  /** The facts about the alarms, as the planner has recorded them. */
  readonly alarms?: SeenAlarms;
}

/** The question to the principal of a check, and its answer. */
export interface OpenCheck {
  /** When it was asked; names the question, so that no earlier answer serves for it. */
  readonly since: string;
  readonly answer?: "approved" | "rejected" | "silent";
  /** The principal that has answered, and its reason. */
  readonly by?: string;
  readonly reason?: string;
}

/** The alarms of a bake, as far as they decide about it. */
export interface SeenAlarms {
  /** The first alarm that ends the bake. */
  readonly failed?: { readonly arn: string; readonly state: AlarmState; readonly at: string };
  /** An alarm that cannot be read: it never passes. */
  readonly unread?: UnreadAlarm;
  /** All were read after the check at the end had begun, and none ends the bake. */
  readonly readTo?: string;
}

/** In the words of CloudWatch. */
export const alarmStates = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;
export type AlarmState = (typeof alarmStates)[number];

export interface UnreadAlarm {
  readonly arn: string;
  readonly since: string;
  readonly message: string;
}

/** One alarm since a bake began. */
export interface ReadAlarm {
  /** Its states are known from the begin of the bake to this time. */
  readonly readTo: string;
  /** When it was first seen in each state but OK. */
  readonly seen: Readonly<Partial<Record<AlarmState, string>>>;
}

/** The facts about the alarms of a stage run that bakes. `tick` writes the row, and the planner deletes it. */
export interface AlarmsRow extends Row {
  readonly type: "Alarms";
  /** The begin of the bake that this is about: a later bake begins anew. */
  readonly from: string;
  /** By ARN. */
  readonly alarms: Readonly<Record<string, ReadAlarm>>;
  readonly unread?: UnreadAlarm;
}

export interface StageRunRow extends Row, StageRunRef {
  readonly type: "StageRun";
  readonly owner: Owner;
  readonly phase: StageRunPhase;
  readonly reason: string;
  readonly message: string;
  /** It takes its stage back: it needs no evidence, and stands still only as `takesBack` says. */
  readonly rollback?: true;
  /** The rollout that had failed in the stage, and why: a rollback of that stands still when it fails as well. */
  readonly takesBack?: { readonly rollout: number; readonly to: number; readonly reason: string };
  /** The snapshot: its targets in their order, in blobs, each with the order of its first target. */
  readonly size: number;
  readonly pages: readonly { readonly key: string; readonly first: number }[];
  /** `membersVersion` of the rollout state when the snapshot was taken. */
  readonly membersVersion: number;
  /** Order of the first target that was never checked. */
  readonly next: number;
  /**
   * Checked targets that are held back, and those that had a turn before. Each is in at most one of these lists, and in
   * none once it has a slot or a row.
   */
  readonly holds: readonly Hold[];
  readonly returned: readonly number[];
  /** Range of orders of targets that were ready with this rollout before the new snapshot, without its end. */
  readonly verified?: { readonly from: number; readonly to: number };
  /**
   * The digest of cordons, freezes, windows and members (`frozenAs`) with which the frozen targets in `holds` were
   * found.
   */
  readonly frozenAs?: string;
  /** Targets that have a row and failed, because they could not be rendered. */
  readonly unrendered: readonly number[];
  readonly counts: Readonly<Record<TargetState, number>>;
  /** Failed targets that were unhealthy before: they count against no budget, and are no evidence. */
  readonly preexistingFailures: number;
  /** The first ten; failures that count against the budget come before the preexisting ones. */
  readonly failures: readonly {
    readonly cluster: string;
    readonly reason: string;
    readonly preexisting?: true;
  }[];
  /** Targets that do not answer: the last ten by name. */
  readonly away: readonly string[];
  /**
   * Targets that people took out: they are counted as Skipped, and stay a part of what the run changes. Absent without
   * any.
   */
  readonly takenOut?: {
    readonly count: number;
    /** The first ten. */
    readonly first: readonly { readonly cluster: string; readonly reason: string; readonly at: string }[];
  };
  /** Absent when the stage had none. */
  readonly gates?: StageGates;
  /** Clusters may have its content already from attempts that did not pass: its gates apply although nothing changes. */
  readonly adopts?: true;
  readonly bake?: Bake;
  readonly check?: OpenCheck;
  /** The hash of what it changes; present when people have to approve that, or a program. */
  readonly planHash?: string;
  /** The parts of the hash; present when people have to approve. */
  readonly planParts?: PlanParts;
  /** The plan that somebody approved before this one took its place: those approvals do not count. */
  readonly outdated?: AskedPlan;
  /** Principals whose approvals let it begin. */
  readonly approvedBy?: readonly string[];
  /** The time for approvals is over. */
  readonly expired?: true;
  /** When a `reconcile` last asked for the failed targets. */
  readonly retriedAt?: string;
  readonly startedAt: string;
  readonly endedAt?: string;
  /** Targets of an earlier snapshot left before this rollout was verified in the stage. */
  readonly left?: true;
  /** Templates that the rollout was to delete and that are desired again. */
  readonly putBack?: readonly string[];
  /** The rollout that replaced it. */
  readonly supersededBy?: number;
  readonly transitions: readonly Transition[];
}

/** The right to change a cluster: from the assignment until the attempt is settled and no worker writes for it any more. */
export interface SlotRow extends Row {
  readonly type: "Slot";
  readonly cluster: string;
  /** The stage run that the slot belongs to; absent for a catch-up, and for a withdrawn assignment. */
  readonly stageRun?: StageRunRef;
  readonly order?: number;
  readonly stage: string;
  readonly rollout: number;
  /** Attempt number of each assigned Sync, by the Sync's name. */
  readonly attempts: Readonly<Record<string, number>>;
  /** The rollout from which a catch-up got back what the cluster had lost. */
  readonly restores?: number;
  /** More assignments of the same target are still to be written. */
  readonly unwritten?: true;
  readonly since: string;
  /**
   * The zone whose workers the slot waits for, and since when. Absent on slots that were given while there was no zone
   * besides `home`.
   */
  readonly zone?: { readonly name: string; readonly since: string };
  /** Set when the attempt is settled. A worker that took the lease with this fence, or before, may still be writing. */
  readonly releasing?: { readonly fence: number };
}

/** The result of a target. */
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
  /** The target was unhealthy before it was assigned: it is shown, and counts against no budget. */
  readonly preexisting?: true;
  /** A person took it out of the stage run. */
  readonly takenOut?: true;
}

/** A cluster that catches up with its stage's current rollout, outside of stage runs. */
export interface CatchUpRow extends Row {
  readonly type: "CatchUp";
  readonly cluster: string;
  readonly why: "joined" | "returned";
  /** The stage in which it failed, or does not answer. */
  readonly stage?: string;
  /** The rollout from which the cluster lost something that is desired: it gets that before the stage's current rollout. */
  readonly rollout?: number;
  readonly since: string;
  /** Why it failed. */
  readonly reason?: string;
}

export interface SourceRef {
  readonly namespace: string;
  readonly name: string;
  /** One of the revisions with the artifact. */
  readonly revision?: string | undefined;
  /** Digest of the artifact, when it is not the rendered one but one with values files. */
  readonly besides?: string | undefined;
}

export interface RenderingRow extends Row {
  readonly type: "Rendering";
  /** `sha256:<hex>` of the fields below. */
  readonly input: string;
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
  readonly engine: string;
  readonly state: "Pending" | "Done" | "Failed";
  /** When a failure that may not be the input's fault is tried again. */
  readonly retryAt?: string;
  readonly requestedAt: string;
  /** When a renderer first began. */
  readonly begunAt?: string;
  /** The renderer in work; no other one is needed until its end. */
  readonly claim?: { readonly by: string; readonly until: string };
  /** Owners to inform when the state is no longer Pending, or no longer Failed. */
  readonly waiting?: readonly Owner[];
  /** Sources that may have its artifacts. */
  readonly sources?: readonly SourceRef[];
  readonly digest?: string;
  readonly doneAt?: string;
  /** When it was last requested: its bytes and its artifact were stored then or, within some tolerance, later. */
  readonly keptAt?: string;
  /** Number of times that it was found lost: it is made again only as often as a back-off allows. */
  readonly losses?: number;
  readonly objects?: number;
  /** Objects that were left out of it, and the reasons. */
  readonly leftOut?: readonly string[];
  readonly failure?: { readonly code: string; readonly message: string; readonly permanent: boolean };
  readonly tries: number;
  /** Tries that ended in a way that may be the input's fault, or did not end. */
  readonly strikes?: number;
}
