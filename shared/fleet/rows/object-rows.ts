/** Rows of the objects that people write: spec and operations by `api`, status by one function. */

import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import type { ReceiverSpec } from "#shared/fleet/kinds/receiver.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncSpec } from "#shared/fleet/kinds/sync-template.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import type { NamedClusters } from "#shared/fleet/rows/named-clusters.ts";
import type { StageRunRef } from "#shared/fleet/rows/rollout-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { FolderDigests } from "#shared/source/folder-digests.ts";
import type { SourceListing } from "#shared/source/http-listing.ts";
import type { Verified } from "#shared/source/signatures/verified.ts";

/** A condition as in Kubernetes: `reason` is a stable CamelCase word, `message` is for people. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

/** A person's act: who, when and why. The principal comes from the signature of the request. */
export interface Act {
  readonly by: string;
  readonly at: string;
  readonly reason?: string;
  /** Grows by one with every act on the object, so that the order of acts does not depend on clocks. */
  readonly number: number;
}

/** A version that was pushed to a Source. */
export interface Upload extends Act {
  readonly version: string;
  /** 64 hexadecimal digits, of the pushed tar.gz. */
  readonly sha256: string;
  /** Name of its place in the storage. */
  readonly id: string;
  /** The origin of the content, as the push names it. */
  readonly origin?: string;
}

/** The seconds of all suspensions of an owner that have ended: a bake does not count them. */
interface Stood {
  readonly stood?: number;
}

/** The approval of a plan in a stage, by the plan's hash: another plan needs another one. */
export interface Approval extends Act {
  readonly stage: string;
  readonly plan: string;
  /** The person, role or user that counts once among the approvers. The answer to a check has none. */
  readonly approver?: string;
  /** The answer to a check, and since when the check is open: it is no approval of people. */
  readonly check?: { readonly since: string; readonly answer: "approved" | "rejected" };
}

/** The first suspend, and those that followed while it lasted, each with its person and reason. */
export interface Suspension extends Act, Stood {
  /** It ends by itself then: `rowAt` (suspension.ts) reads it as a resume at this time. */
  readonly until?: string;
  readonly again?: readonly Act[];
}

/** While it is in force, no stage takes a newer rollout. Rollouts in progress, catch-ups and deletions go on. */
export interface RolloutHold extends Act {
  /** It ends by itself then. */
  readonly until?: string;
  /** Numbers of rollouts that were released from it, in their order: stages take these all the same. */
  readonly except?: readonly number[];
}

/** Until its end, windows do not close for the group. */
export interface Exemption extends Act {
  readonly until: string;
  /** Names of these Windows; without them, all. */
  readonly windows?: readonly string[];
}

/** A person passes a stage run that lacks evidence, answers or gates. */
export interface Promotion extends Act, StageRunRef {
  readonly verb: "promote";
}

/** Failed clusters get another turn. */
export interface Retry extends Act, NamedClusters {
  readonly verb: "retry";
}

/** Targets are taken out of a rollout's stage run, and of its later snapshots, until a retry names their clusters. */
export interface Skip extends Act, NamedClusters {
  readonly verb: "skip";
  readonly rollout: number;
  readonly stage: string;
}

/** An act on stage runs. It is kept until it is carried out, and for as long as its stage run is in progress. */
export type GateAct = Promotion | Retry | Skip;

/** A person keeps everything new from a Cluster. */
export interface Cordoning extends Act {
  /** It ends by itself then. */
  readonly until?: string;
}

/** A person rejects a rollout, or takes that back. */
export interface RolloutRejection extends Act {
  readonly rollout: number;
  readonly do: "reject" | "unreject";
}

/** Lets the change with this hash through a guard, once. */
export interface GuardApproval extends Act {
  readonly hash: string;
  /** The clusters of a prune that a check met, and no turn: they get one. */
  readonly clusters?: readonly string[];
}

/**
 * The half that commands write. Applying a document never touches it, so that git does not undo what people did by
 * hand.
 */
export interface Operations {
  readonly suspended?: Suspension;
  /** The newest `resume`, or the end of a suspension; it removes `suspended`. */
  readonly resumed?: Act & Stood;
  /** The newest `reconcile`. */
  readonly reconcile?: Act;
  /** The newest `rollout refresh`: stage runs in progress take a new snapshot. */
  readonly refresh?: Act;
  readonly hold?: RolloutHold;
  /** The last ones, the newest last. */
  readonly approvals?: readonly Approval[];
  /** The newest `rollout release`. */
  readonly released?: Act;
  readonly exempt?: Exemption;
  /** The newest `rollout unexempt`. */
  readonly unexempted?: Act;
  /** In the order of their numbers, at most 50. */
  readonly gates?: readonly GateAct[];
  /**
   * The newest rollback, and the number of the rollout that it goes back to. It deletes these templates, although the
   * spec has them; absent without any.
   */
  readonly rollback?: Act & { readonly to: number; readonly deletes?: readonly string[] };
  /** The newest rejection, or the end of it, of each rollout; the planner carries them out in their order. */
  readonly rejections?: readonly RolloutRejection[];
  /** The newest approval of what a guard withholds, and those before it that may not be used yet. */
  readonly guard?: GuardApproval & { readonly earlier?: readonly GuardApproval[] };
  /** The newest `recover` of any of its Syncs: what is open is replaced by what is desired now. */
  readonly recovered?: Act & {
    /** `recover --all`: each Sync that its cluster refuses after this continues, once, from what the cluster remembers. */
    readonly all?: true;
    /** A former installation, or the uid of a former Sync, whose Syncs are taken over. */
    readonly from?: string;
  };
  readonly deletion?: Act & { readonly cascade: "delete" | "orphan" };
  /** For a Source: the versions that were pushed, the newest last, at most 200. */
  readonly uploads?: readonly Upload[];
  /** For a Cluster: nothing new is assigned to it. The planner reads that in the row of all cordons. */
  readonly cordoned?: Cordoning;
  /** For a Cluster: the newest `uncordon`. */
  readonly uncordoned?: Act;
  /** For a Cluster: the accepted identity, by the uid that was seen. */
  readonly accepted?: Act & {
    readonly uid: string;
    /** Earlier assignments of the cluster are forgotten: from here on the planner treats it as a new cluster. */
    readonly forgotten?: true;
  };
}

export interface ObjectRow<Kind extends string, Spec, Status> extends Row {
  readonly type: Kind;
  readonly uid: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Grows by one with every change of `spec`. */
  readonly generation: number;
  readonly createdAt: string;
  readonly spec: Spec;
  readonly operations: Operations;
  readonly status: Status;
}

export interface Artifact {
  /** In Flux's format: `main@sha1:<commit>`, `v1.2.0@sha1:<commit>`, `sha1:<commit>`. */
  readonly revision: string;
  /** `sha256:<hex>` over the canonical listing of the part: equal files have equal digests. */
  readonly digest: string;
  /** Digest of the revision and the spec that the files come from; absent in artifacts from before it was recorded. */
  readonly madeFrom?: string;
  /** Address of the upstream, or what a push gave as the origin of its content; absent in artifacts from before it was recorded. */
  readonly origin?: string;
  /** Bytes of the stored archive. */
  readonly sizeBytes: number;
  readonly files: number;
  /** Folders that are Helm charts, as far as they are recorded. */
  readonly charts?: readonly string[];
  /** Digests of the folders that templates use; absent in artifacts that were fetched before they were recorded. */
  readonly folders?: FolderDigests;
  readonly storedAt: string;
  /** First line of the commit's message, its author, and its time. */
  readonly subject: string;
  readonly author: string;
  /** Absent in artifacts that were fetched before this was recorded. */
  readonly committedAt?: string;
  /** The tag of the revision moved: this digest it had before. */
  readonly movedFrom?: string;
  /** Absent when the spec demanded no signature. */
  readonly verified?: Verified & {
    /** When it was verified. */
    readonly at: string;
  };
  /** Absent when the spec includes no other Source. */
  readonly included?: readonly IncludedArtifact[];
}

/** Files of another Source that are a part of an artifact. */
export interface IncludedArtifact {
  readonly source: string;
  readonly fromPath: string;
  /** Absent: the name of the Source. */
  readonly toPath?: string;
  readonly revision: string;
  readonly digest: string;
}

/** Revisions of tags that a Source followed, to notice a tag that moves. */
export interface FollowedTags {
  /** Address of the upstream that has them. */
  readonly of: string;
  /** Revisions, the newest first: at most one for each name. */
  readonly seen: readonly string[];
}

/** A request for a revision: another spec, or a newer `reconcile`, makes another request. */
export interface AskedRevision {
  readonly revision: string;
  readonly generation: number;
  /** Number of `operations.reconcile`. */
  readonly asked?: number;
}

/** A fetch in progress. A record that is older than `until` is from a function that died. */
export interface FetchStart extends AskedRevision {
  /** Id of the fetch. */
  readonly id: string;
  readonly startedAt: string;
  /** No function that started then is still running. */
  readonly until: string;
  /** Number of fetches for the same request, including this one. */
  readonly starts: number;
  /** A poll was requested meanwhile: the fetching function polls again at its end. */
  readonly desired?: true;
}

/** A revision that can never be used; it is not fetched again. */
export interface RefusedRevision extends AskedRevision {
  readonly code: string;
  readonly message: string;
}

/** A revision and its artifact, in an event. */
export interface NamedArtifact {
  readonly revision: string;
  readonly digest: string;
}

/** Since when a Source can be resolved, or cannot, and why. */
export interface SourceAvailability {
  readonly availability: "available" | "unavailable";
  /** Reason of the condition Ready. */
  readonly reason: string;
  readonly since: string;
}

/** Something that happened to a Source, for programs outside. */
export type SourceHappening = {
  /** Grows by one with every event of the Source. */
  readonly sequence: number;
  readonly time: string;
} & (
  | (NamedArtifact & {
      readonly type: "revision";
      readonly origin?: string;
      /** Absent for the first artifact. */
      readonly previous?: NamedArtifact;
    })
  | (SourceAvailability & {
      readonly type: "availability";
      readonly message: string;
      /** The last good artifact, which stays in use. */
      readonly artifact?: NamedArtifact;
      /** Since when the upstream may have something newer. */
      readonly staleSince?: string;
      /** Absent when nothing was known before. */
      readonly previous?: SourceAvailability;
    })
);

export interface SourceEvents {
  /** Number of the newest event. */
  readonly last: number;
  /** Events that may not have been sent, the oldest first. */
  readonly pending?: readonly SourceHappening[];
  /** How often they were tried in vain. */
  readonly tries?: number;
  /** When they are sent again. */
  readonly againAt?: string;
}

export interface SourceStatus {
  readonly artifact?: Artifact;
  /** `Located.question` of the last listing: an equal one needs no fetch. */
  readonly observedReference?: string;
  /** The listing that named the artifact's revision. */
  readonly listing?: SourceListing;
  /** The generation that the last attempt was about, whether it succeeded or not. */
  readonly observedGeneration?: number;
  /** `<revision> <digest>` of the newest artifact that every owner was informed of. */
  readonly announced?: string;
  readonly attemptedAt?: string;
  readonly fetch?: FetchStart;
  /** Digest of the artifact while it is known to be missing from the storage. */
  readonly lost?: string;
  readonly refused?: RefusedRevision;
  readonly followedTags?: FollowedTags;
  readonly failures?: number;
  /** Time of the last successful poll, since when the upstream may have something newer; absent while polls succeed, and without an artifact. */
  readonly staleSince?: string;
  /** The host of the upstream wants no request before. */
  readonly limitedUntil?: string;
  /** Number of the newest `reconcile` that was carried out. */
  readonly handledReconcile?: number;
  /** Absent before the first event, and when the installation has no bus. */
  readonly events?: SourceEvents;
  readonly conditions: readonly Condition[];
}

export type SourceRow = ObjectRow<"Source", SourceSpec, SourceStatus> & { readonly namespace: string };

/** Nothing observes a Receiver: a delivery reads its row, and writes another one. */
export type ReceiverRow = ObjectRow<"Receiver", ReceiverSpec, { readonly conditions: readonly [] }> & {
  readonly namespace: string;
};

/**
 * The address that EKS gave for a cluster, after the cluster had answered there. The Cluster's row has it, so that a
 * worker in a new sandbox does not ask EKS again.
 */
export interface EksAddress {
  readonly arn: string;
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  readonly askedAt: string;
}

export interface ClusterStatus {
  /** uid of `kube-system`: the cluster's identity. */
  readonly uid?: string;
  readonly version?: string;
  readonly lastSeenAt?: string;
  /** A time before which, within some tolerance, no blob of its Syncs was stored; absent: none before the registration. */
  readonly blobsAt?: string;
  /** The same for inventories alone, from versions that kept the other blobs for ever; the next `blobsAt` replaces it. */
  readonly renewedAt?: string;
  readonly address?: EksAddress;
  /** Uid of the other cluster that answers instead, while it does. */
  readonly mismatch?: string;
  readonly conditions: readonly Condition[];
}

/** The half that `discover` writes: EKS's facts about a cluster, as its ClusterDiscovery reads them. */
export interface Discovered {
  /** Name of the ClusterDiscovery. */
  readonly by: string;
  readonly arn: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Values;
  readonly access?: NonNullable<ClusterSpec["access"]>;
  /** When EKS created it: another time means another cluster with the same ARN. */
  readonly createdAt?: string;
  /** Since when the owning account reports that the cluster does not exist. */
  readonly goneSince?: string;
}

/** `generation` is 0 when nobody has written the Cluster and it was discovered. */
export type ClusterRow = ObjectRow<"Cluster", ClusterSpec, ClusterStatus> & { readonly discovered?: Discovered };

/** The uid that `kube-system` must have: the accepted one, otherwise the one that was seen first. */
export function clusterIdentity({ operations, status }: Pick<ClusterRow, "operations" | "status">): string | undefined {
  return operations.accepted?.uid ?? status.uid;
}

/** Changes when the Cluster is registered again, and when another cluster is accepted as it: its Syncs begin again. */
export function incarnationOf({ uid, operations }: Pick<ClusterRow, "uid" | "operations">): string {
  return operations.accepted?.forgotten === true ? `${uid}#${operations.accepted.number}` : uid;
}

/** Values that people set for clusters by a selector. */
export type ClusterValuesRow = ObjectRow<"ClusterValues", ClusterValuesSpec, { readonly conditions: readonly [] }>;

/** When changes of clusters may start. The planner reads its spec in the row of all windows. */
export type WindowRow = ObjectRow<"Window", WindowSpec, { readonly conditions: readonly [] }>;

/** The part of every cluster that the planner needs; one partition, written with the Cluster in one transaction. */
export interface FleetRow extends Row {
  readonly type: "Fleet";
  readonly name: string;
  /** Uid of its incarnation. */
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Values of the Cluster alone, without ClusterValues; see `effective-values.ts`. */
  readonly values: Values;
  /** Names of discovered values that nobody wrote on the Cluster. */
  readonly discoveredValues?: readonly string[];
  /** EKS's facts; absent when the cluster is not in EKS, or a version wrote the row that did not record them. */
  readonly arn?: string;
  /** The zone whose workers reach it; absent for `home`. */
  readonly zone?: string;
}

/** Grows by one with every entry that is written in its part of the fleet's directory, in the same transaction. */
export interface FleetVersionRow extends Row {
  readonly type: "FleetVersion";
  /**
   * The clusters of the versions up to this one, one for each version, the newest last. When the row's version differs,
   * a writer named no cluster.
   */
  readonly noted?: { readonly upTo: number; readonly clusters: readonly string[] };
}

/** Exclusive counts; they sum to `selected`. */
export interface OwnerStatus {
  readonly observedGeneration?: number;
  /** Number of the newest act of `operations` that the planner has seen. */
  readonly observedOperation?: number;
  /** Number of the newest `reconcile` after which every cluster has been checked. */
  readonly reconciled?: number;
  readonly revision?: string;
  /** The newest revision, when it changes nothing that the templates use: it is not rolled out. */
  readonly noted?: string;
  /** Number of the newest rollout. */
  readonly rollout?: number;
  /** Each stage with its current rollout, and the one that it updates to. */
  readonly stages?: readonly { readonly name: string; readonly current?: number; readonly updatingTo?: number }[];
  readonly state?: OwnerState;
  /** Number of changes that a guard withholds, when there are any. */
  readonly withheld?: number;
  /** When `state` began; absent if an older version of Starling wrote it. */
  readonly stateSince?: string;
  /** The counts sum to `selected`; `drifted` is present only when some are. */
  readonly clusters?: Readonly<
    Record<"selected" | "ready" | "changing" | "failed" | "unreachable" | "waiting", number>
  > & { readonly drifted?: number };
  readonly asOf?: string;
  readonly conditions: readonly Condition[];
}

/**
 * - `Complete`: every selected cluster was ready with what is desired; the only good state;
 * - `Drifted`: every cluster has what is desired, and some objects differ from it permanently;
 * - `Degraded`: no rollout is open, and a cluster is not ready, or a named cluster is not registered;
 * - `Reconciling`: no rollout is open, and a cluster changes, or a requested check has not reached every cluster;
 * - `NoClusters`: no registered cluster matches; `ClusterNotFound`: no named cluster is registered;
 * - `Held`: a hold keeps a newer rollout back, a rejection does, cordons keep clusters back, or people skipped some, and
 *   nothing else is to be done;
 * - `Guarded`: a guard withholds a change, and nothing else is to be done;
 * - `Waiting`: there is nothing to roll out yet; the other states are about the open rollout.
 */
export type OwnerState =
  | "Complete"
  | "Drifted"
  | "Degraded"
  | "Reconciling"
  | "NoClusters"
  | "ClusterNotFound"
  | "RollingBack"
  | "Rolling"
  | "Waiting"
  | "Halted"
  | "Suspended"
  | "Held"
  | "Guarded"
  | "Frozen"
  | "Stalled"
  | "Deleting";

/** True when no cluster is selected: the next one may be registered at any time, or never. @param state - one state. */
export function reachesNobody(state: string | undefined): boolean {
  return state === "NoClusters" || state === "ClusterNotFound";
}

export type SyncGroupRow = ObjectRow<"SyncGroup", SyncGroupSpec, OwnerStatus> & { readonly namespace: string };
export type UserSyncRow = ObjectRow<"Sync", SyncSpec, OwnerStatus> & { readonly namespace: string };
export type OwnerRow = SyncGroupRow | UserSyncRow;

/** A directory entry: its key has all facts. */
export interface DirectoryRow extends Row {
  readonly type: "Directory";
}

/** The number of the newest act, which is always kept; undefined without acts. */
export function newestAct(operations: Operations): number | undefined {
  const acts: readonly (Act | undefined)[] = [
    ...Object.values(operations).flat(),
    ...(operations.suspended?.again ?? []),
  ];
  // Rows from before acts had numbers have acts without one.
  const numbers = acts.flatMap((act) => act?.number ?? []);
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}

/** The number of an act that follows all others. */
export function nextAct(operations: Operations): number {
  return (newestAct(operations) ?? 0) + 1;
}

/** True while the planner has not yet seen the newest spec or act: the row stays due until then. */
export function isUnplanned(row: Pick<OwnerRow, "generation" | "operations" | "status">): boolean {
  return row.status.observedGeneration !== row.generation || row.status.observedOperation !== newestAct(row.operations);
}
