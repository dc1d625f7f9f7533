import type { SleepingClock } from "#shared/base/clock.ts";
import type { ClusterRow, EksAddress } from "#shared/fleet/rows/object-rows.ts";
import type { ServedNames } from "#shared/fleet/served-names.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { BlobStore, Ids, Log, MessageSender, Metrics, Table } from "#shared/ports.ts";

export interface Hurry {
  /** A request that takes longer, with all tries, ends the work with `KeptWaiting`. */
  readonly answerWithinMs?: number;
}

/** Opens clients for clusters. Connections and the kinds of a cluster are kept between two pieces of work. */
export interface ClusterConnector {
  /** @throws StarlingError when the cluster's credentials cannot be read. */
  connect(cluster: ClusterRow, deadline: Date, hurry?: Hurry): Promise<ClusterClient>;
  /** Forgets the address of a cluster after another cluster answered there. */
  distrust(cluster: ClusterRow): void;
}

export interface WorkerPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly clock: SleepingClock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly connector: ClusterConnector;
  /** Reads a cluster's address from EKS when its row has none yet; absent where no cluster is in EKS. */
  readonly newAddress?: (cluster: ClusterRow) => EksAddress | undefined;
  readonly installation: string;
  readonly zone: WorkerZone;
}

/** Where the worker runs. */
export interface WorkerZone {
  readonly own: string;
  /** The other zones of the installation. Only the worker of `home` knows them. */
  readonly others: readonly string[];
  /** The names of clusters that zones serve; absent where each serves every name. */
  readonly served?: ServedNames;
}
