import type { ClusterConnector } from "#functions/apply/worker-ports.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-cluster-client.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { ClusterClient } from "#shared/domain/cluster-client.ts";
import type { ClusterRow } from "#shared/domain/rows/object-rows.ts";
import { StarlingError } from "#shared/errors.ts";
import type { Clock, SecretReader } from "#shared/ports.ts";

/**
 * Connections kept in one process. One that makes room is not closed, because work on it may be under way: its idle
 * sockets are closed by the server.
 */
const KEPT = 1000;

/** Connections over HTTPS, kept while the process lives; a changed Cluster gets a new one. */
export class KubeConnector implements ClusterConnector {
  readonly #secrets: SecretReader;
  readonly #clock: Clock;
  readonly #connections = new Map<string, KubeConnection>();

  /** @param clock - the one that deadlines are told in. */
  constructor(secrets: SecretReader, clock: Clock) {
    this.#secrets = secrets;
    this.#clock = clock;
  }

  async connect(cluster: ClusterRow, deadline: Date): Promise<ClusterClient> {
    const id = `${cluster.uid}/${cluster.generation}`;
    const connection = this.#connections.get(id) ?? this.#open(cluster);
    this.#connections.delete(id);
    this.#connections.set(id, connection);
    const [oldest] = this.#connections.keys();
    if (this.#connections.size > KEPT && oldest !== undefined) this.#connections.delete(oldest);
    return connection.client({ deadlineMs: deadline.getTime() });
  }

  #open(cluster: ClusterRow): KubeConnection {
    const { server, caData, tlsServerName, token } = cluster.spec.endpoint;
    const endpoint: KubeEndpoint = {
      server,
      ...(caData === undefined ? {} : { caData }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      credentials: {
        token: async ({ refresh }) => (await this.#read(token.secret, refresh)) ?? (await this.#reread(token.secret)),
      },
    };
    return new KubeConnection(endpoint, this.#clock);
  }

  async #read(secret: string, fresh: boolean): Promise<string | undefined> {
    return tokenIn(await this.#secrets.read(secret, { fresh }));
  }

  /** A secret that was put right is to be seen at once, not when it is forgotten. @throws StarlingError `InvalidCredentials` */
  async #reread(secret: string): Promise<string> {
    const token = await this.#read(secret, true);
    if (token === undefined) throw invalidCredentials(secret);
    return token;
  }
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
