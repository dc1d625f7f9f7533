/** Rows of what people write: spec and operations by `api`, status by one function. */

import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncSpec } from "#shared/fleet/kinds/sync-template.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { FolderDigests } from "#shared/source/folder-digests.ts";

/** A condition as in Kubernetes: `reason` is a stable CamelCase word, `message` is for people. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

/** Who did something, when and why: the principal comes from the signature of the request. */
export interface Act {
  readonly by: string;
  readonly at: string;
  readonly reason?: string;
  /** Grows by one with every act on the object, so that which is newer is no matter of clocks. */
  readonly number: number;
}

/** The first suspend, and those that came while it lasted: who else wants it to stand still, and why. */
export interface Suspension extends Act {
  readonly again?: readonly Act[];
}

/** The half that verbs write; applying a document never touches it, so git does not undo what was done by hand. */
export interface Operations {
  readonly suspended?: Suspension;
  /** The newest `resume`; takes `suspended` away. */
  readonly resumed?: Act;
  /** The newest `reconcile`. */
  readonly reconcile?: Act;
  /** The newest `rollout refresh`: what is under way is sealed anew. */
  readonly refresh?: Act;
  /** The newest `recover` of any of its Syncs: what is open is replaced by what is wanted now. */
  readonly recovered?: Act & {
    /** `recover --all`: each Sync that its cluster refuses after this goes on from what the cluster remembers, once. */
    readonly all?: true;
    /** An installation, or the uid of a Sync, that is gone, and whose Syncs are taken over. */
    readonly from?: string;
  };
  readonly deletion?: Act & { readonly cascade: "delete" | "orphan" };
  /** Of a Cluster: whom somebody has said that it is, by the uid that was seen. */
  readonly accepted?: Act & {
    readonly uid: string;
    /** What was assigned to the cluster before is forgotten: from here on it is a newcomer to the planner. */
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
  /** As Flux writes it: `main@sha1:<commit>`, `v1.2.0@sha1:<commit>`, `sha1:<commit>`. */
  readonly revision: string;
  /** `sha256:<hex>` over the canonical listing of the part: equal content, equal digest. */
  readonly digest: string;
  /** Of the stored archive. */
  readonly sizeBytes: number;
  readonly files: number;
  /** Folders that are Helm charts, as far as they are noted. */
  readonly charts?: readonly string[];
  /** What templates take of it, by folder; absent of what was fetched before they were noted. */
  readonly folders?: FolderDigests;
  readonly storedAt: string;
  /** Of the commit: the first line of its message, who wrote it, and when it was committed. */
  readonly subject: string;
  readonly author: string;
  /** Absent of what was fetched before this was noted. */
  readonly committedAt?: string;
}

/** A revision as it was asked for: another spec, or a newer `reconcile`, is another question. */
export interface AskedRevision {
  readonly revision: string;
  readonly generation: number;
  /** Number of `operations.reconcile`. */
  readonly asked?: number;
}

/** Somebody fetches. What is left of it after `until` is from a function that died. */
export interface FetchStart extends AskedRevision {
  /** Of the one who fetches. */
  readonly id: string;
  readonly startedAt: string;
  /** Nobody who started then still runs. */
  readonly until: string;
  /** Of the same question, this one included. */
  readonly starts: number;
  /** Somebody asked for a look meanwhile: who fetches looks again in the end. */
  readonly desired?: true;
}

/** What can never be taken, and is not fetched again to find that out. */
export interface RefusedRevision extends AskedRevision {
  readonly code: string;
  readonly message: string;
}

export interface SourceStatus {
  readonly artifact?: Artifact;
  /** `<reference>@<object id>` of the last listing: equal, and nothing is fetched. */
  readonly observedReference?: string;
  /** The generation the last attempt was about, whether it succeeded or not. */
  readonly observedGeneration?: number;
  /** `<revision> <digest>` of the newest artifact that every subject was told of. */
  readonly announced?: string;
  readonly attemptedAt?: string;
  readonly fetch?: FetchStart;
  /** Digest of the artifact, while it is known to be gone from the storage. */
  readonly lost?: string;
  readonly refused?: RefusedRevision;
  readonly failures?: number;
  /** Number of the newest `reconcile` that was done. */
  readonly handledReconcile?: number;
  readonly conditions: readonly Condition[];
}

export type SourceRow = ObjectRow<"Source", SourceSpec, SourceStatus> & { readonly namespace: string };

/**
 * What EKS said of where a cluster is, once the cluster had answered there. It stands in the Cluster's row, so that a
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
  /** No blob that its Syncs name was stored much before; absent: none before it was registered. */
  readonly blobsAt?: string;
  /** The same of inventories alone, as versions wrote it that kept the others for ever; goes with the next `blobsAt`. */
  readonly renewedAt?: string;
  readonly address?: EksAddress;
  /** uid of the other cluster that answers instead, while it does. */
  readonly mismatch?: string;
  readonly conditions: readonly Condition[];
}

/** The half that `discover` writes: what EKS says of a cluster, as its ClusterDiscovery reads it. */
export interface Discovered {
  /** Name of the ClusterDiscovery. */
  readonly by: string;
  readonly arn: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Values;
  readonly access?: NonNullable<ClusterSpec["access"]>;
  /** When EKS made it: another time, and it is another cluster of the same ARN. */
  readonly createdAt?: string;
  /** Since when the account that owns it says that there is no such cluster. */
  readonly goneSince?: string;
}

/** `generation` 0: nobody has written it, it was discovered. */
export type ClusterRow = ObjectRow<"Cluster", ClusterSpec, ClusterStatus> & { readonly discovered?: Discovered };

/** The uid that `kube-system` must have: what somebody accepted, else what it had when it was first seen. */
export function clusterIdentity({ operations, status }: Pick<ClusterRow, "operations" | "status">): string | undefined {
  return operations.accepted?.uid ?? status.uid;
}

/** Changes when the Cluster is registered anew, and when another cluster is accepted as it: what is on it begins anew. */
export function incarnationOf({ uid, operations }: Pick<ClusterRow, "uid" | "operations">): string {
  return operations.accepted?.forgotten === true ? `${uid}#${operations.accepted.number}` : uid;
}

/** What people say of clusters that they select. */
export type ClusterValuesRow = ObjectRow<"ClusterValues", ClusterValuesSpec, { readonly conditions: readonly [] }>;

/** What the planner needs of every cluster; one partition, written with the Cluster in one transaction. */
export interface FleetRow extends Row {
  readonly type: "Fleet";
  readonly name: string;
  /** Of its incarnation. */
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Without those of ClusterValues; see `effective-values.ts`. */
  readonly values: Values;
  /** Names of those that were discovered, and that nobody wrote on the Cluster. */
  readonly discoveredValues?: readonly string[];
  /** Of EKS; absent: it is not there, or a version wrote it that did not note it. */
  readonly arn?: string;
}

/** Grows by one with every entry that is written in its part of the fleet's directory, in the same transaction. */
export interface FleetVersionRow extends Row {
  readonly type: "FleetVersion";
  /**
   * The clusters of the versions up to this one, one each, the newest last. Where the row's version is another, somebody wrote
   * an entry and named no cluster.
   */
  readonly noted?: { readonly upTo: number; readonly clusters: readonly string[] };
}

/** Exclusive counts; they sum to `selected`. */
export interface OwnerStatus {
  readonly observedGeneration?: number;
  /** Number of the newest act of `operations` that the planner has seen. */
  readonly observedOperation?: number;
  /** Number of the newest `reconcile` after which every cluster has been looked at. */
  readonly reconciled?: number;
  readonly revision?: string;
  /** The newest revision, where it changes nothing of what the templates take: it is not rolled out. */
  readonly noted?: string;
  /** Number of the newest content. */
  readonly rollout?: number;
  /** Each with the content that it is on, and the one that goes through it. */
  readonly stages?: readonly { readonly name: string; readonly current?: number; readonly updatingTo?: number }[];
  readonly state?: OwnerState;
  /** They sum to `selected`; `drifted` is there only where some are. */
  readonly clusters?: Readonly<
    Record<"selected" | "ready" | "changing" | "failed" | "unreachable" | "waiting", number>
  > & { readonly drifted?: number };
  readonly asOf?: string;
  readonly conditions: readonly Condition[];
}

/**
 * - `Complete`: every selected cluster was seen ready with what is wanted; the only one that is good;
 * - `Drifted`: every one has what is wanted, and on some objects are not as they were applied, and stay so;
 * - `Degraded`: no rollout is open, and one of them is not, or a cluster that is named is not registered;
 * - `Reconciling`: no rollout is open, and a cluster changes, or a look was asked for that not every cluster has had;
 * - `NoClusters`: nothing that is registered matches; `ClusterNotFound`: nothing that is named is registered;
 * - `Waiting`: there is nothing to roll out yet; the others are about the rollout that is open.
 */
export type OwnerState =
  | "Complete"
  | "Drifted"
  | "Degraded"
  | "Reconciling"
  | "NoClusters"
  | "ClusterNotFound"
  | "Rolling"
  | "Waiting"
  | "Halted"
  | "Suspended"
  | "Frozen"
  | "Stalled"
  | "Deleting";

/** Nothing is taken to nobody: the next cluster may come at any time, or never. @param state - one word. */
export function reachesNobody(state: string | undefined): boolean {
  return state === "NoClusters" || state === "ClusterNotFound";
}

export type SyncGroupRow = ObjectRow<"SyncGroup", SyncGroupSpec, OwnerStatus> & { readonly namespace: string };
export type UserSyncRow = ObjectRow<"Sync", SyncSpec, OwnerStatus> & { readonly namespace: string };
export type OwnerRow = SyncGroupRow | UserSyncRow;

/** A directory entry: its key says all. */
export interface DirectoryRow extends Row {
  readonly type: "Directory";
}

/** The number of the newest act, which is always kept; a half without acts has none. */
export function newestAct(operations: Operations): number | undefined {
  const { suspended, reconcile, refresh, deletion, resumed, accepted, recovered } = operations;
  const acts = [suspended, ...(suspended?.again ?? []), reconcile, refresh, deletion, resumed, accepted, recovered];
  // A row of before acts had numbers has acts without one.
  const numbers = acts.flatMap((act) => act?.number ?? []);
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}

/** True while the planner has not yet seen the newest spec or act: the row is due until it has. */
export function isUnplanned(row: Pick<OwnerRow, "generation" | "operations" | "status">): boolean {
  return row.status.observedGeneration !== row.generation || row.status.observedOperation !== newestAct(row.operations);
}
