import { randomBytes, randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Authenticator } from "#apiserver/authorization/authentication.ts";
import { bootstrap } from "#apiserver/bootstrap.ts";
import { Cluster } from "#apiserver/cluster.ts";
import { type ClusterPort, openClusterPort } from "#apiserver/cluster-port.ts";
import { startControllers } from "#apiserver/controllers/start-controllers.ts";
import { type ClusterFaults, clusterFaultsSchema } from "#apiserver/faults.ts";
import type { Interceptor } from "#apiserver/interception.ts";
import { type Json, type JsonObject, stringifyJson } from "#apiserver/json.ts";
import { type HostedCluster, type RequestRecord, requestListener } from "#apiserver/request-listener.ts";
import { Scheduler } from "#apiserver/scheduler.ts";
import { loadState, saveState } from "#apiserver/state-files.ts";
import { createTlsCertificate, expiredTlsCertificate, type TlsCertificate } from "#apiserver/tls-certificate.ts";

export type { Authenticator } from "#apiserver/authorization/authentication.ts";
export type { User } from "#apiserver/authorization/user.ts";
export type { ClusterFaults } from "#apiserver/faults.ts";
export type { InterceptedRequest, Interception, Interceptor } from "#apiserver/interception.ts";
export type { RequestRecord } from "#apiserver/request-listener.ts";

export interface ClusterHostOptions {
  /** The default, 0, takes any free port. */
  readonly port?: number;
  /** Returns milliseconds since the epoch. The default is the machine's clock. */
  readonly clock?: () => number;
  /** The time in milliseconds until a Pod becomes ready. The default is 200. */
  readonly readyAfterMs?: number;
  /**
   * Whether an image can never be pulled. The default matches images of `registry.invalid` and images whose name
   * contains `does-not-exist`.
   */
  readonly imagePullFails?: (image: string) => boolean;
  /** The folder for one JSON file per cluster. `save` and `stop` write these files, and the start reads them. */
  readonly stateDir?: string;
  /** "off" runs no controllers: no object becomes ready and no object is garbage-collected. */
  readonly controllers?: "on" | "off";
  /**
   * Knows bearer tokens other than the administrator's. Without an authenticator, other tokens are answered with 401.
   */
  readonly authenticator?: Authenticator;
  /** Wraps the listener of every cluster. A guard can refuse strangers, for example. */
  readonly guard?: (listener: RequestListener) => RequestListener;
}

/** The settings of one cluster of a host. */
export interface AddClusterOptions {
  /** The uid of kube-system. The default is random. */
  readonly uid?: string;
  /** The default is `v1.36.2`. */
  readonly version?: string;
  /**
   * Replaces the host's authenticator for this cluster. It is not saved: a cluster from a state file has the host's.
   */
  readonly authenticator?: Authenticator;
}

export interface ClusterConnection {
  readonly name: string;
  /** `https://127.0.0.1:PORT/clusters/NAME`. Each cluster has its own path. The port is shared or the cluster's own. */
  readonly server: string;
  /** The certificate authority: PEM in base64, as a kubeconfig holds it. */
  readonly caData: string;
  readonly token: string;
  /** The uid of kube-system. */
  readonly uid: string;
}

export interface ClusterHost {
  /** Starts a cluster with the namespaces of a new cluster. @throws Error when a cluster has this name already. */
  addCluster(name: string, options?: AddClusterOptions): ClusterConnection;
  /** Stops a cluster. Later requests to it are answered with 404. */
  removeCluster(name: string): void;
  /** Puts a new, empty cluster behind a cluster's address and token. The new cluster has no faults. */
  replaceCluster(name: string, options?: Pick<AddClusterOptions, "uid">): Promise<ClusterConnection>;
  /**
   * Opens a port of its own for a cluster. Faults of its network and certificate need such a port. The cluster's state
   * file keeps it. The old address stays valid. @returns the connection to the new port.
   */
  openPort(name: string): Promise<ClusterConnection>;
  connections(): readonly ClusterConnection[];
  /**
   * Replaces all faults of a cluster; `{}` ends all of them. Faults are not saved. @throws Error for values outside
   * `clusterFaultsSchema`, and for a fault that needs a port of its own when the cluster has none.
   */
  setFaults(cluster: string, faults: ClusterFaults): Promise<void>;
  /** The current faults of a cluster. `next` counts the requests that a fault still affects. */
  faults(cluster: string): ClusterFaults;
  /**
   * Every request since the start or the last `clearRequests`, in the order of their ends. At least the newest 200,000
   * requests stay.
   */
  requests(): readonly RequestRecord[];
  clearRequests(): void;
  /** Calls the listener for each finished request until the returned function is called. */
  onRequest(listener: (record: RequestRecord) => void): () => void;
  /**
   * Sets a handler between clients and servers. It can cut connections before or after the effect, answer itself, or
   * delay.
   */
  intercept(handler: Interceptor | undefined): void;
  /** Every stored object of a cluster, sorted by resource, namespace and name. */
  objects(cluster: string): readonly JsonObject[];
  /** A kubeconfig with one context per cluster, named after it. The YAML is also JSON. */
  kubeconfig(): string;
  /** Writes the state files of clusters that have changed since the last save. Without a `stateDir` it does nothing. */
  save(): Promise<void>;
  /** Closes every connection and the port, and writes the state files. */
  stop(): Promise<void>;
}

/** Above this number only the newest half of the records stays, because a machine may run for days. */
const maxRecords = 400_000;
const defaultVersion = "v1.36.2";
const defaultReadyAfterMs = 200;

function cannotBePulled(image: string): boolean {
  return image.startsWith("registry.invalid/") || image.includes("does-not-exist");
}

/** Starts embedded API servers for any number of clusters behind one HTTPS port of 127.0.0.1. */
export async function startClusterHost(options: ClusterHostOptions = {}): Promise<ClusterHost> {
  const clock = options.clock ?? Date.now;
  const clusters = new Map<string, HostedCluster>();
  const listeners = new Set<(record: RequestRecord) => void>();
  let records: RequestRecord[] = [];
  let interceptor: Interceptor | undefined;

  const saved = options.stateDir === undefined ? undefined : await loadState(options.stateDir);
  const tls: TlsCertificate = saved?.tls ?? (await createTlsCertificate());
  const answer = requestListener({
    cluster: (name) => clusters.get(name),
    clock,
    interceptor: () => interceptor,
    record(entry) {
      records.push(entry);
      if (records.length > maxRecords) records = records.slice(-maxRecords / 2);
      for (const each of listeners) each(entry);
    },
  });
  const guarded = options.guard?.(answer) ?? answer;
  const serve = ({ key, cert }: TlsCertificate) =>
    createServer({ key, cert, maxHeaderSize: 64 * 1024, keepAliveTimeout: 60_000 }, guarded);
  /** This server and the next one never listen themselves: the ports pass connections to them. */
  const server = serve(tls);
  /** Serves clusters whose certificate has expired. */
  let expired: Server | undefined;
  const ports = new Map<string, ClusterPort>();
  const shared = await openClusterPort({
    port: options.port ?? 0,
    accept: (socket) => server.emit("connection", socket),
  });

  function host(cluster: Cluster, authenticator = options.authenticator): void {
    const scheduler = new Scheduler(clock, (error) => {
      process.emitWarning(error instanceof Error ? error : String(error));
    });
    startControllers(cluster, {
      scheduler,
      readyAfterMs: options.readyAfterMs ?? defaultReadyAfterMs,
      imagePullFails: options.imagePullFails ?? cannotBePulled,
    });
    clusters.set(cluster.options.name, { cluster, scheduler, authenticator });
    bootstrap(cluster);
  }
  function hosted(name: string): HostedCluster {
    const found = clusters.get(name);
    if (found === undefined) throw new Error(`there is no cluster ${JSON.stringify(name)}`);
    return found;
  }
  function create(name: string, identity: { readonly uid: string; readonly version: string; readonly token: string }) {
    return new Cluster({ name, ...identity, clock, controllers, caCert: tls.cert });
  }
  /** Opens the saved port if it is free, because a kubeconfig may name it. */
  async function openPort(name: string, desired = 0): Promise<void> {
    const accept = (socket: Socket) => {
      const isExpired = clusters.get(name)?.cluster.faults.current().certificate === "expired";
      (isExpired ? expired : server)?.emit("connection", socket);
    };
    const opened = await openClusterPort({ port: desired, accept }).catch((error: unknown) => {
      if (desired === 0) throw error;
      return openClusterPort({ port: 0, accept });
    });
    ports.set(name, opened);
    savedRevisions.delete(name);
  }
  function connection({ options: { name, token, uid } }: Cluster): ClusterConnection {
    const own = ports.get(name)?.port ?? shared.port;
    const server = `https://127.0.0.1:${own}/clusters/${encodeURIComponent(name)}`;
    return { name, server, caData: Buffer.from(tls.cert).toString("base64"), token, uid };
  }
  const savedRevisions = new Map<string, number>();
  async function save(): Promise<void> {
    if (options.stateDir === undefined) return;
    const changed = [...clusters.values()]
      .map(({ cluster }) => cluster)
      .filter((cluster) => savedRevisions.get(cluster.options.name) !== cluster.store.revision);
    const revisions = changed.map(({ options: { name }, store }) => [name, store.revision] as const);
    await saveState(options.stateDir, { tls, clusters: changed, portOf: (name) => ports.get(name)?.port });
    for (const [name, revision] of revisions) savedRevisions.set(name, revision);
  }

  const controllers = options.controllers ?? "on";
  for (const state of saved?.clusters ?? []) {
    const cluster = new Cluster({ ...state.identity, clock, controllers, caCert: tls.cert }, state.revision);
    for (const [resource, object] of state.objects) cluster.store.restore(resource, object);
    host(cluster);
    if (state.port !== undefined) await openPort(state.identity.name, state.port);
  }

  return {
    addCluster(name, { uid = randomUUID(), version = defaultVersion, authenticator } = {}) {
      if (clusters.has(name)) throw new Error(`cluster ${JSON.stringify(name)} exists already: remove it first`);
      const token = randomBytes(24).toString("base64url");
      const cluster = create(name, { uid, version, token });
      host(cluster, authenticator);
      return connection(cluster);
    },
    removeCluster(name) {
      clusters.get(name)?.scheduler.close();
      clusters.delete(name);
      void ports.get(name)?.close();
      ports.delete(name);
    },
    async replaceCluster(name, { uid = randomUUID() } = {}) {
      const { cluster: former, scheduler, authenticator } = hosted(name);
      const { version, token } = former.options;
      scheduler.close();
      former.faults.set({});
      savedRevisions.delete(name);
      const cluster = create(name, { uid, version, token });
      host(cluster, authenticator);
      await ports.get(name)?.setNetwork("open");
      return connection(cluster);
    },
    async openPort(name) {
      const { cluster } = hosted(name);
      if (!ports.has(name)) await openPort(name);
      return connection(cluster);
    },
    async setFaults(name, faults) {
      const { cluster } = hosted(name);
      const next = clusterFaultsSchema.parse(faults);
      const own = ports.get(name);
      if (own === undefined && (next.network ?? next.certificate) !== undefined) {
        throw new Error(
          `cluster ${JSON.stringify(name)} has no port of its own: call openPort before faults of its network or certificate are set`,
        );
      }
      if (next.certificate !== undefined) expired ??= serve(await expiredTlsCertificate(tls));
      const before = cluster.faults.current();
      cluster.faults.set(next);
      if (before.network === next.network && before.certificate === next.certificate) return;
      await own?.setNetwork(next.network ?? "open");
    },
    faults: (name) => hosted(name).cluster.faults.current(),
    connections: () => [...clusters.values()].map(({ cluster }) => connection(cluster)),
    requests: () => records,
    clearRequests() {
      records = [];
    },
    onRequest(each) {
      listeners.add(each);
      return () => listeners.delete(each);
    },
    intercept(handler) {
      interceptor = handler;
    },
    objects(name) {
      const store = clusters.get(name)?.cluster.store;
      if (store === undefined) return [];
      return store.resources().flatMap((resource) => store.list(resource));
    },
    kubeconfig: () => kubeconfig([...clusters.values()].map(({ cluster }) => connection(cluster))),
    save,
    async stop() {
      for (const { scheduler } of clusters.values()) scheduler.close();
      await Promise.all([shared, ...ports.values()].map((each) => each.close()));
      await save();
    },
  };
}

function kubeconfig(connections: readonly ClusterConnection[]): string {
  const document: Json = {
    apiVersion: "v1",
    kind: "Config",
    clusters: connections.map(({ name, server, caData }) => ({
      name,
      cluster: { server, "certificate-authority-data": caData },
    })),
    users: connections.map(({ name, token }) => ({ name, user: { token } })),
    contexts: connections.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    "current-context": connections[0]?.name ?? "",
  };
  return `${stringifyJson(document, 2)}\n`;
}
