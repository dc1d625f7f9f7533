import { unknownZone } from "#functions/apply/cluster/unknown-zone.ts";
import type { ClusterConnector, Hurry } from "#functions/apply/cluster/worker-ports.ts";
import type { EksAccess, EksTarget } from "#shared/adapters/aws/eks-access.ts";
import type { EksEndpoint } from "#shared/adapters/aws/eks-clusters.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { externalIdOf } from "#shared/base/external-id.ts";
import { tokenFor } from "#shared/fleet/cluster-secret.ts";
import { parseEksArn, roleArnIn } from "#shared/fleet/eks-arn.ts";
import type { ClusterSpec, EndpointOverride } from "#shared/fleet/kinds/cluster.ts";
import { specOf, zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { ClusterRow, EksAddress } from "#shared/fleet/rows/object-rows.ts";
import { notServedText, type ServedNames, servesName } from "#shared/fleet/served-names.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { SecretReader } from "#shared/ports.ts";

/** Number of clusters that one process remembers; the certificates of one take 25 KB outside of the heap. */
const keptClusters = 1000;
/**
 * Number of kinds that the process remembers for all clusters, of some 500 bytes each: no cluster may use the memory of
 * all.
 */
const keptKinds = 100_000;

export interface ConnectorPorts {
  readonly secrets: SecretReader;
  readonly eks: Pick<EksAccess, "endpoint" | "address" | "token" | "distrust">;
  /** The clock that deadlines use. */
  readonly clock: SleepingClock;
  readonly installation: string;
  /** The addresses that clusters may have. */
  readonly addresses: AddressRules;
  /** The zone in which it connects. */
  readonly zone: string;
  /** The names of clusters that zones serve; absent where each serves every name. */
  readonly served?: ServedNames;
}

/** A secret, and the credential that it gives for one address. */
interface TokenSource {
  readonly secret: string;
  readonly tokenIn: (text: string) => ReturnType<typeof tokenFor>;
}

interface Kept {
  readonly connection: KubeConnection;
  /** A change of this key opens another connection. */
  readonly endpoint: KubeEndpoint;
}

/** Connections over HTTPS, whose sockets live as long as the work. A changed Cluster gets a new connection. */
export class KubeConnector implements ClusterConnector {
  readonly #ports: ConnectorPorts;
  readonly #kept = new Map<string, Kept>();
  /** Connections that may have sockets, including those that are no longer kept. */
  readonly #used = new Set<KubeConnection>();
  #works = 0;

  constructor(ports: ConnectorPorts) {
    this.#ports = ports;
  }

  /**
   * Closes the connections when the work has ended and no other work is running: the sandbox is frozen after that. An
   * open socket would occupy descriptors here and at the server, and would be dead or silent after the freeze.
   */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#works += 1;
    try {
      return await work();
    } finally {
      this.#works -= 1;
      if (this.#works === 0) this.#close();
    }
  }

  #close(): void {
    for (const connection of this.#used) connection.close();
    this.#used.clear();
  }

  async connect(cluster: ClusterRow, deadline: Date, hurry: Hurry = {}): Promise<ClusterClient> {
    const endpoint = await this.endpointOf(cluster);
    // The `discovered` half has no generation.
    const id = JSON.stringify([cluster.uid, cluster.generation, cluster.discovered?.access, cluster.discovered?.arn]);
    const before = this.#kept.get(id);
    const kept =
      before !== undefined && sameAddress(before.endpoint, endpoint)
        ? before
        : { endpoint, connection: new KubeConnection(endpoint, this.#ports.clock) };
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    this.#used.add(kept.connection);
    this.#makeRoom(id);
    return kept.connection.client({ deadlineMs: deadline.getTime(), ...hurry });
  }

  #makeRoom(newest: string): void {
    let kinds = [...this.#kept.values()].reduce((sum, { connection }) => sum + connection.keptKinds, 0);
    for (const [id, { connection }] of this.#kept) {
      if (id === newest || (this.#kept.size <= keptClusters && kinds <= keptKinds)) return;
      kinds -= connection.keptKinds;
      this.#kept.delete(id);
    }
  }

  distrust(cluster: ClusterRow): void {
    const target = this.targetOf(cluster);
    if (target !== undefined) this.#ports.eks.distrust(target);
  }

  /** The address that EKS reports, when the row has none yet. */
  newAddress(cluster: ClusterRow): EksAddress | undefined {
    const target = this.targetOf(cluster);
    const address = target && this.#ports.eks.address(target);
    return address?.askedAt === cluster.status.address?.askedAt ? undefined : address;
  }

  /** The address and the credentials; neither is kept. */
  async endpointOf(cluster: ClusterRow): Promise<KubeEndpoint> {
    const spec = specOf(cluster);
    const zone = zoneOf(cluster);
    const { zone: own, served = new Map() } = this.#ports;
    if (zone !== own || !servesName(served, zone, cluster.name)) throw unreachedZone(cluster, served);
    const target = this.targetOf(cluster);
    if (target !== undefined) {
      const described = await this.#ports.eks.endpoint(target, cluster.status.address);
      return this.#eksEndpoint(target, placeOf(described, spec.eks?.endpointOverride));
    }
    if (spec.endpoint !== undefined) return this.#secretEndpoint(spec.endpoint);
    throw invalidSpec("neither eks nor endpoint");
  }

  /** @returns undefined for a cluster outside EKS. */
  targetOf(row: ClusterRow): EksTarget | undefined {
    const { eks, access } = specOf(row);
    if (eks === undefined) return undefined;
    const cluster = parseEksArn(eks.arn);
    if (cluster === undefined) throw invalidSpec(`spec.eks.arn ${eks.arn}, which is no ARN of a cluster`);
    if (access?.role === undefined) return { cluster };
    const externalId = externalIdOf(this.#ports.installation, row.name);
    return { cluster, role: { arn: roleArnIn(cluster, access.role.name), externalId } };
  }

  #eksEndpoint(target: EksTarget, place: EksPlace): KubeEndpoint {
    const { eks } = this.#ports;
    return {
      ...place,
      addresses: this.#ports.addresses,
      credentials: { token: (options) => eks.token(target, options) },
      onUnreachable: () => eks.distrust(target),
    };
  }

  #secretEndpoint({ server, caData, tlsServerName, token }: NonNullable<ClusterSpec["endpoint"]>): KubeEndpoint {
    const address = {
      server,
      ...defined({ caData, tlsServerName }),
    };
    const tokenIn = rememberingLast((text) => tokenFor(address, { name: token.secret, text }));
    return {
      ...address,
      addresses: this.#ports.addresses,
      credentials: {
        token: ({ refresh }) => this.#token({ secret: token.secret, tokenIn }, refresh ? "fresh" : "kept"),
      },
    };
  }

  /**
   * Called before every request, for the address of this connection. The present secret and Cluster decide, not those
   * of the time when the connection was opened.
   * @throws StarlingError `SecretUnbound`, `SecretMismatch`, `InvalidCredentials`, and the errors of the reader
   */
  async #token({ secret, tokenIn }: TokenSource, memory: "kept" | "fresh"): Promise<string> {
    const text = await this.#ports.secrets.read(secret, { fresh: memory === "fresh" });
    const found = tokenIn(text);
    if ("token" in found) return found.token;
    // A corrected secret takes effect at once, not when the cached one expires.
    if (memory === "kept") return this.#token({ secret, tokenIn }, "fresh");
    throw new StarlingError(found.message, { code: found.code, retry: "transient", data: { secret } });
  }
}

/** Caches the answer, because each request asks the same. */
function rememberingLast<T>(work: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly found: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, found: work(text) };
    return last.found;
  };
}

function sameAddress(one: KubeEndpoint, other: KubeEndpoint): boolean {
  return one.server === other.server && one.caData === other.caData && one.tlsServerName === other.tlsServerName;
}

type EksPlace = Pick<KubeEndpoint, "server" | "caData" | "tlsServerName">;

/**
 * The place of the API server: an override replaces host and port. The authority is that of EKS, whatever the
 * Cluster says: a server at another address proves before the token is sent that it has a certificate of this authority,
 * for the same name as at the address of EKS.
 */
function placeOf({ server, caData }: EksEndpoint, override: EndpointOverride | undefined): EksPlace {
  if (override === undefined) return { server, caData };
  const { hostname, pathname } = new URL(server);
  const { tlsServerName = hostname.replace(/^\[|\]$/g, "") } = override;
  return { server: new URL(pathname, override.server).href.replace(/\/$/, ""), caData, tlsServerName };
}

/** In `home`, only a zone whose workers do not reach the cluster comes this far: see `isElsewhere` of the worker. */
function unreachedZone(cluster: ClusterRow, served: ServedNames): StarlingError {
  const zone = zoneOf(cluster);
  if (!servesName(served, zone, cluster.name)) {
    const message = `zone ${zone} of the Cluster ${notServedText(served, zone, cluster.name)}`;
    return new StarlingError(message, { code: "NameNotServed", retry: "permanent" });
  }
  const { message, remedy } = unknownZone(cluster);
  return new StarlingError(`${message}; ${remedy}`, { code: "ZoneNotFound", retry: "permanent" });
}

/** The schema refuses all of these, but the row may be older or newer than this code. */
function invalidSpec(what: string): StarlingError {
  return new StarlingError(`the Cluster has ${what}; apply it again`, { code: "InvalidCluster", retry: "permanent" });
}
