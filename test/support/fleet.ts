/** The clusters of an end-to-end test: embedded API servers, or real ones if their programs exist. */
import {
  type Authenticator,
  type ClusterConnection,
  type Interceptor,
  type RequestRecord,
  startClusterHost,
} from "@starling/embedded-apiserver";
import type { ClusterFaults } from "@starling/embedded-apiserver/faults";
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";

export interface Fleet {
  /**
   * Whether controllers run beside the API servers. Without them workloads do not become ready and namespaces are not
   * deleted.
   */
  readonly controllers: "on" | "off";
  add(name: string): Promise<ClusterConnection>;
  /** Removes a cluster and puts an empty one behind the same address. */
  replace(name: string): Promise<ClusterConnection>;
  connection(name: string): ClusterConnection;
  connections(): readonly ClusterConnection[];
  /** Every stored object of a cluster. */
  objects(cluster: string): Promise<readonly JsonObject[]>;
  requests(): readonly RequestRecord[];
  clearRequests(): void;
  onRequest(listener: (record: RequestRecord) => void): () => void;
  intercept(handler: Interceptor | undefined): void;
  /** Replaces the faults of a cluster. Only embedded servers support this. */
  setFaults?(cluster: string, faults: ClusterFaults): Promise<void>;
  stop(): Promise<void>;
}

export interface FleetTarget {
  readonly name: string;
  readonly controllers: Fleet["controllers"];
  start(clock: () => number): Promise<Fleet>;
}

/** The time until a Pod becomes ready, in milliseconds of the world's clock. */
const readyAfterMs = 500;

export const embeddedFleet = embeddedFleetFor();

/** @param authenticator - for tokens other than the clusters' own. */
export function embeddedFleetFor(authenticator?: Authenticator): FleetTarget {
  return {
    name: "embedded API servers",
    controllers: "on",
    start: (clock) => startEmbedded(clock, authenticator),
  };
}

async function startEmbedded(clock: () => number, authenticator: Authenticator | undefined): Promise<Fleet> {
  const host = await startClusterHost({ clock, readyAfterMs, ...defined({ authenticator }) });
  const connections = new Map<string, ClusterConnection>();
  async function add(name: string): Promise<ClusterConnection> {
    const connection = host.addCluster(name);
    connections.set(name, connection);
    return connection;
  }
  return {
    controllers: "on",
    add,
    replace(name) {
      host.removeCluster(name);
      return add(name);
    },
    connection(name) {
      const connection = connections.get(name);
      if (connection === undefined) throw new Error(`there is no cluster ${name}`);
      return connection;
    },
    connections: () => [...connections.values()],
    objects: async (cluster) => host.objects(cluster),
    requests: host.requests,
    clearRequests: host.clearRequests,
    onRequest: host.onRequest,
    intercept: host.intercept,
    setFaults: host.setFaults,
    stop: host.stop,
  };
}
