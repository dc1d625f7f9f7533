import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Authorizer } from "#local/cluster/api-server.ts";
import type { Authenticator } from "#local/cluster/authentication.ts";
import { bootstrap } from "#local/cluster/bootstrap.ts";
import { Cluster } from "#local/cluster/cluster.ts";
import { startControllers } from "#local/cluster/controllers/start-controllers.ts";
import {
  type HostedCluster,
  type Interceptor,
  type RequestRecord,
  requestListener,
} from "#local/cluster/request-listener.ts";
import { Scheduler } from "#local/cluster/scheduler.ts";
import { loadState, saveState, type TlsIdentity } from "#local/cluster/state-files.ts";
import { createTlsIdentity } from "#local/cluster/tls-identity.ts";
import { type Json, type JsonObject, stringifyJson } from "#shared/domain/json.ts";

export type { Authenticator, User } from "#local/cluster/authentication.ts";
export type { Interceptor, RequestRecord } from "#local/cluster/request-listener.ts";

export interface ClusterHostOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** Milliseconds since the epoch; the machine's clock by default. */
  readonly clock?: () => number;
  /** How long Pods take to become ready; 200 by default. */
  readonly readyAfterMs?: number;
  /** Images that can never be pulled; by default all of `registry.invalid` and all with `does-not-exist` in them. */
  readonly imagePullFails?: (image: string) => boolean;
  /** One JSON file for each cluster, written by `save` and `stop` and read at the start. */
  readonly stateDir?: string;
  /** "off" leaves the API server alone: nothing becomes ready, nothing is collected. */
  readonly controllers?: "on" | "off";
  /** Decides for users that are no administrators; by default they may do nothing. */
  readonly authorizer?: Authorizer;
  /** Knows bearer tokens that are not the administrator's; without it they are answered 401. */
  readonly authenticator?: Authenticator;
}

/** What is special in one cluster of a host. */
export interface AddClusterOptions {
  /** The uid of kube-system; a random one by default. */
  readonly uid?: string;
  /** `v1.36.2` by default. */
  readonly version?: string;
  /** Instead of the host's. Not saved: a cluster that comes from a state file has the host's. */
  readonly authenticator?: Authenticator;
}

export interface ClusterConnection {
  readonly name: string;
  /** `https://127.0.0.1:PORT/clusters/NAME`: one port, one path for each cluster. */
  readonly server: string;
  /** The certificate authority, PEM in base64, as a kubeconfig holds it. */
  readonly caData: string;
  readonly token: string;
  /** The uid of kube-system. */
  readonly uid: string;
}

export interface ClusterHost {
  /** Starts a cluster with the namespaces of a new one. @throws Error when the name is taken. */
  addCluster(name: string, options?: AddClusterOptions): ClusterConnection;
  /** Stops a cluster; requests to it are answered 404. */
  removeCluster(name: string): void;
  connections(): readonly ClusterConnection[];
  /** Every request since the start or the last `clearRequests`, in the order of their ends; the oldest go after 200,000. */
  requests(): readonly RequestRecord[];
  clearRequests(): void;
  /** Calls the listener for each finished request until the returned function is called. */
  onRequest(listener: (record: RequestRecord) => void): () => void;
  /** Puts faults between clients and servers: lost connections before or after the effect, other answers, delays. */
  intercept(handler: Interceptor | undefined): void;
  /** Every object of a cluster as it is stored, by resource, namespace and name. */
  objects(cluster: string): readonly JsonObject[];
  /** One context for each cluster, named after it. YAML that is also JSON. */
  kubeconfig(): string;
  /** Writes the state files of clusters that changed since the last time; nothing without a `stateDir`. */
  save(): Promise<void>;
  /** Closes every connection and the port; writes the state files. */
  stop(): Promise<void>;
}

/** Of the requests, at least half as many are kept: a machine may run for days. */
const maxRecords = 400_000;
const defaultVersion = "v1.36.2";
const defaultReadyAfterMs = 200;

function cannotBePulled(image: string): boolean {
  return image.startsWith("registry.invalid/") || image.includes("does-not-exist");
}

/** Starts the embedded API servers of any number of clusters behind one HTTPS port of 127.0.0.1. */
export async function startClusterHost(options: ClusterHostOptions = {}): Promise<ClusterHost> {
  const clock = options.clock ?? Date.now;
  const clusters = new Map<string, HostedCluster>();
  const listeners = new Set<(record: RequestRecord) => void>();
  let records: RequestRecord[] = [];
  let interceptor: Interceptor | undefined;

  const saved = options.stateDir === undefined ? undefined : await loadState(options.stateDir);
  const tls: TlsIdentity = saved?.tls ?? (await createTlsIdentity());
  const listener = requestListener({
    cluster: (name) => clusters.get(name),
    clock,
    authorizer: options.authorizer ?? (() => "deny"),
    interceptor: () => interceptor,
    record(entry) {
      records.push(entry);
      if (records.length > maxRecords) records = records.slice(-maxRecords / 2);
      for (const each of listeners) each(entry);
    },
  });
  const server = createServer(
    { key: tls.key, cert: tls.cert, maxHeaderSize: 64 * 1024, keepAliveTimeout: 60_000 },
    listener,
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

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
  }
  function connection({ options: { name, token, uid } }: Cluster): ClusterConnection {
    const server = `https://127.0.0.1:${port}/clusters/${encodeURIComponent(name)}`;
    return { name, server, caData: Buffer.from(tls.cert).toString("base64"), token, uid };
  }
  const savedRevisions = new Map<string, number>();
  async function save(): Promise<void> {
    if (options.stateDir === undefined) return;
    const changed = [...clusters.values()]
      .map(({ cluster }) => cluster)
      .filter((cluster) => savedRevisions.get(cluster.options.name) !== cluster.store.revision);
    const revisions = changed.map(({ options: { name }, store }) => [name, store.revision] as const);
    await saveState(options.stateDir, { tls, clusters: changed });
    for (const [name, revision] of revisions) savedRevisions.set(name, revision);
  }

  const controllers = options.controllers ?? "on";
  for (const state of saved?.clusters ?? []) {
    const cluster = new Cluster({ ...state.identity, clock, controllers, caCert: tls.cert }, state.revision);
    for (const [resource, object] of state.objects) cluster.store.restore(resource, object);
    host(cluster);
  }

  return {
    addCluster(name, { uid = randomUUID(), version = defaultVersion, authenticator } = {}) {
      if (clusters.has(name)) throw new Error(`cluster ${JSON.stringify(name)} exists already: remove it first`);
      const token = randomBytes(24).toString("base64url");
      const cluster = new Cluster({ name, uid, token, version, clock, controllers, caCert: tls.cert });
      host(cluster, authenticator);
      bootstrap(cluster);
      return connection(cluster);
    },
    removeCluster(name) {
      clusters.get(name)?.scheduler.close();
      clusters.delete(name);
    },
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
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
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
