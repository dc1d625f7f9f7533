/** The services of AWS that the workers of a zone need, with the finding for each: `starling zone check` shows it. */
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import type { CheckResult, LinkState } from "#shared/fleet/cluster-links.ts";

/** In the order in which a worker needs them. */
export const zoneServices = ["dynamodb", "s3", "sqs", "sts", "eks", "secretsmanager"] as const;
export type ZoneService = (typeof zoneServices)[number];

/**
 * Links in order. Inside of a network, a route that is missing looks like a security group that is closed: both are
 * `route`.
 */
export type ServiceLink = "dns" | "route" | "tls" | "token" | "authorization";

export interface ServiceFinding {
  readonly service: ZoneService;
  readonly region: string;
  /** `unneeded`: the way is broken, and no cluster of the zone needs the service. `skipped`: the worker did not ask in this region. */
  readonly state: LinkState | "unneeded";
  /** False when no cluster of the zone needs the service. */
  readonly needed: boolean;
  readonly host: string;
  /** The answer of the resolver of the zone's network. */
  readonly addresses: readonly string[];
  /** What these addresses are; absent where nothing shows it. A private address is that of an interface endpoint. */
  readonly network?: "private" | "public";
  /** The link that does not hold. */
  readonly link?: ServiceLink;
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

/** The needs of the clusters of a zone, besides rows, blobs and messages. */
export interface ZoneNeeds {
  /** The regions of the clusters by ARN. */
  readonly regions: readonly string[];
  /** Whether a cluster has a token in a secret. */
  readonly secrets: boolean;
}

export interface ZoneCheck {
  /** Id of the request that it answers. */
  readonly id: string;
  readonly at: string;
  /** The region of the workers. */
  readonly region: string;
  /** The network of the workers, which the API does not know of a zone in another account or region. */
  readonly network: ZoneObject["network"];
  /** The number of existing subnets that the setting names; absent for other networks, and where it is unknown. */
  readonly subnets?: number;
  readonly services: readonly ServiceFinding[];
}

/** The worst state of what the zone needs. */
export function resultOfServices(services: readonly ServiceFinding[]): CheckResult {
  const states = new Set(services.map(({ state }) => state));
  return (["broken", "unknown", "limited"] as const).find((state) => states.has(state)) ?? "ok";
}
