import type { ClusterConnector } from "#functions/apply/worker-ports.ts";
import type { EksAccess, EksTarget } from "#shared/adapters/eks-access.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { ClusterClient } from "#shared/domain/cluster-client.ts";
import { parseEksArn, roleArnIn } from "#shared/domain/eks-arn.ts";
import type { ClusterSpec } from "#shared/domain/kinds/cluster.ts";
import type { ClusterRow } from "#shared/domain/rows/object-rows.ts";
import { StarlingError } from "#shared/errors.ts";
import type { Clock, SecretReader } from "#shared/ports.ts";

/**
 * Connections kept in one process. One that makes room is not closed, because work on it may be under way: its idle
 * sockets are closed by the server.
 */
const KEPT = 1000;

export interface ConnectorPorts {
  readonly secrets: SecretReader;
  readonly eks: Pick<EksAccess, "endpoint" | "token" | "distrust">;
  /** The one that deadlines are told in. */
  readonly clock: Clock;
}

/** What one connection goes to; another one is opened when it changes. */
type Endpoint = KubeEndpoint & { readonly caData?: string };

interface Kept {
  readonly connection: KubeConnection;
  readonly endpoint: Endpoint;
}

/** Connections over HTTPS, kept while the process lives; a changed Cluster gets a new one. */
export class KubeConnector implements ClusterConnector {
  readonly #ports: ConnectorPorts;
  readonly #kept = new Map<string, Kept>();

  constructor(ports: ConnectorPorts) {
    this.#ports = ports;
  }

  async connect(cluster: ClusterRow, deadline: Date): Promise<ClusterClient> {
    const endpoint = await this.#endpointOf(cluster.spec);
    const id = `${cluster.uid}/${cluster.generation}`;
    const before = this.#kept.get(id);
    const same = before?.endpoint.server === endpoint.server && before.endpoint.caData === endpoint.caData;
    const kept = same ? before : { endpoint, connection: new KubeConnection(endpoint, this.#ports.clock) };
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return kept.connection.client({ deadlineMs: deadline.getTime() });
  }

  distrust({ spec }: ClusterRow): void {
    if (spec.eks !== undefined) this.#ports.eks.distrust(targetOf(spec.eks, spec.access));
  }

  async #endpointOf(spec: ClusterSpec): Promise<Endpoint> {
    if (spec.eks !== undefined) return this.#eksEndpoint(targetOf(spec.eks, spec.access));
    if (spec.endpoint !== undefined) return this.#secretEndpoint(spec.endpoint);
    throw invalidSpec("neither eks nor endpoint");
  }

  async #eksEndpoint(target: EksTarget): Promise<Endpoint> {
    const { eks } = this.#ports;
    return {
      ...(await eks.endpoint(target)),
      credentials: { token: (options) => eks.token(target, options) },
      onUnreachable: () => eks.distrust(target),
    };
  }

  #secretEndpoint({ server, caData, tlsServerName, token }: NonNullable<ClusterSpec["endpoint"]>): Endpoint {
    return {
      server,
      ...(caData === undefined ? {} : { caData }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      credentials: {
        token: async ({ refresh }) => (await this.#read(token.secret, refresh)) ?? (await this.#reread(token.secret)),
      },
    };
  }

  async #read(secret: string, fresh: boolean): Promise<string | undefined> {
    return tokenIn(await this.#ports.secrets.read(secret, { fresh }));
  }

  /** A secret that was put right is to be seen at once, not when it is forgotten. @throws StarlingError `InvalidCredentials` */
  async #reread(secret: string): Promise<string> {
    const token = await this.#read(secret, true);
    if (token === undefined) throw invalidCredentials(secret);
    return token;
  }
}

function targetOf({ arn }: NonNullable<ClusterSpec["eks"]>, access: ClusterSpec["access"]): EksTarget {
  const cluster = parseEksArn(arn);
  if (cluster === undefined) throw invalidSpec(`spec.eks.arn ${arn}, which is no ARN of a cluster`);
  if (access === undefined) return { cluster };
  const { name, externalId } = access.role;
  return { cluster, role: { arn: roleArnIn(cluster, name), ...(externalId === undefined ? {} : { externalId }) } };
}

/** The schema lets none of these through; a row may be older or newer than this code. */
function invalidSpec(what: string): StarlingError {
  return new StarlingError(`the Cluster has ${what}; apply it again`, { code: "InvalidCluster", retry: "permanent" });
}

/** Many a secret was made from a file, and ends with a line. @returns undefined when the text is no token. */
function tokenIn(text: string): string | undefined {
  const token = text.trim();
  return token === "" || /[\s\p{Cc}]/u.test(token) ? undefined : token;
}

function invalidCredentials(secret: string): StarlingError {
  return new StarlingError(
    `secret ${secret} does not hold what spec.endpoint.token says: expected the token itself, and nothing else`,
    { code: "InvalidCredentials", retry: "transient", data: { secret } },
  );
}
