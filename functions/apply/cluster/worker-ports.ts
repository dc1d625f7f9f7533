import type { SleepingClock } from "#shared/base/clock.ts";
import type { ClusterRow, EksAddress } from "#shared/fleet/rows/object-rows.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { BlobStore, Ids, Log, MessageSender, Metrics, Table } from "#shared/ports.ts";

export interface Hurry {
  /** An answer that takes longer, with all tries, ends the work by `KeptWaiting`. */
  readonly answerWithinMs?: number;
}

/** Opens clients for clusters; connections and what was learned of a cluster's kinds are kept between pieces of work. */
export interface ClusterConnector {
  /** @throws StarlingError when the cluster's credentials cannot be read. */
  connect(cluster: ClusterRow, deadline: Date, hurry?: Hurry): Promise<ClusterClient>;
  /** What answered was another cluster: where this one is has to be asked again. */
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
  /** Where EKS says that a cluster is, when its row does not say so yet; left out where no cluster is in EKS. */
  readonly newAddress?: (cluster: ClusterRow) => EksAddress | undefined;
  readonly installation: string;
}
