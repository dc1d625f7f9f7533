/** An embedded API server for the private networks of zones, which notes from which zone each request comes. */
import { type ClusterConnection, startClusterHost } from "@starling/embedded-apiserver";
import { defined } from "#shared/base/defined.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/** A request, as it arrives. */
export interface Visit {
  /** The loopback address that stands for the zone from which it comes. */
  readonly source: string;
  readonly method: string;
  readonly path: string;
  /** The bearer token. */
  readonly token: string | undefined;
}

export interface PrivateCluster {
  /** The port on 127.0.0.1 to which the gates of zones carry connections. */
  readonly port: number;
  readonly connection: ClusterConnection;
  /** Every request, oldest first. */
  readonly visits: readonly Visit[];
  /** Replaces the function that each request waits for before the server sees it. */
  before(wait: ((visit: Visit) => Promise<void>) | undefined): void;
  /** The data `color` of the ConfigMaps in a namespace, by their names. */
  colors(namespace: string): Readonly<Record<string, string>>;
  /** The Cluster that names it by this address, and the value of its secret. */
  documents(cluster: ClusterPlace): { readonly document: object; readonly secret: string; readonly value: string };
  stop(): Promise<void>;
}

export interface ClusterPlace {
  readonly name: string;
  /** In the private network. */
  readonly address: string;
  /** The default is `home`. */
  readonly zone?: string;
}

/** Every cluster is the same one to its clients: only its authority, its token and its address tell it from others. */
const hostedName = "prod";
export const privatePort = 6443;
/** A name in the certificate, which does not have the private address. */
const tlsServerName = "localhost";

/** @param options.stateDir - keeps the authority; a second server on a copy of it is taken for the first one. */
export async function startPrivateCluster(options: {
  readonly clock: () => number;
  readonly stateDir?: string;
}): Promise<PrivateCluster> {
  const visits: Visit[] = [];
  let wait: ((visit: Visit) => Promise<void>) | undefined;
  const host = await startClusterHost({
    ...options,
    guard: (listener) => (request, response) => {
      const { method = "", url = "", socket, headers } = request;
      const path = url.replace(`/clusters/${hostedName}`, "");
      const token = headers.authorization?.replace("Bearer ", "");
      const visit = { source: socket.remoteAddress ?? "", method, path, token };
      visits.push(visit);
      void (wait?.(visit) ?? Promise.resolve()).then(() => listener(request, response));
    },
  });
  const [kept] = host.connections();
  const connection = kept === undefined ? host.addCluster(hostedName) : await host.replaceCluster(hostedName);
  await host.save();
  return {
    port: Number(new URL(connection.server).port),
    connection,
    visits,
    before(next) {
      wait = next;
    },
    colors: (namespace) =>
      Object.fromEntries(
        host.objects(hostedName).flatMap((object) => {
          const [name, color] = [stringAt(object, "metadata", "name"), stringAt(object, "data", "color")];
          const isThere = stringAt(object, "metadata", "namespace") === namespace;
          return !isThere || name === undefined || color === undefined ? [] : [[name, color]];
        }),
      ),
    documents({ name, address, zone }) {
      const { caData, token } = connection;
      const endpoint = { server: `https://${address}:${privatePort}/clusters/${hostedName}`, caData, tlsServerName };
      const secret = `starling/clusters/${name}`;
      const document = {
        apiVersion: ourApiVersion,
        kind: "Cluster",
        metadata: { name, labels: { name } },
        spec: { endpoint: { ...endpoint, token: { secret } }, ...defined({ access: zone && { zone } }) },
      };
      return { document, secret, value: clusterSecret({ ...endpoint, token }) };
    },
    stop: () => host.stop(),
  };
}
