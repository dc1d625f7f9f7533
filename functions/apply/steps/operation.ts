import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { WriteGate } from "#functions/apply/lease/write-gate.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Finding } from "#shared/fleet/sync/observe.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { StandingOf } from "#shared/kube/engine/foreign-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";

/** The facts and ports that each operation gets. */
export interface OperationContext {
  readonly row: SyncRow;
  readonly client: ClusterClient;
  readonly claim: SyncClaim;
  readonly clusterUid: string | undefined;
  readonly deadline: Date;
  /** The reason why nothing may be written, whatever is found. */
  readonly withheld?: Withheld;
  /** The gate that is asked before each phase of the operation that writes. */
  readonly gate: WriteGate;
  readonly ports: WorkerPorts;
  /** The other Syncs of its owner on the cluster. */
  readonly siblings: SiblingSyncs;
}

/** Questions about the other Syncs of one owner on a cluster; see `siblings.ts`. */
export interface SiblingSyncs {
  /** By `objectIdKey`, the set id of the sibling that desires an object; otherwise the reason why that cannot be read. */
  desiringOrWhy(ids: readonly ObjectId[]): Promise<ReadonlyMap<string, string> | Withheld>;
  readonly standingOf: StandingOf;
}

export interface OperationResult extends Finding {
  /** The uid of another cluster that answered instead. */
  readonly otherUid?: string;
}

/** One operation on a Sync: apply, delete, prune, verify, inspect or probe. */
export type Operation = (context: OperationContext) => Promise<OperationResult>;
