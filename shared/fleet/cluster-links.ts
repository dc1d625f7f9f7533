/** The way from Starling to a cluster, link by link, with the finding for each: `starling cluster check` shows it. */

/**
 * Links in order: a link is checked when those before it hold. A cluster with an endpoint has `secret` instead of the
 * four before it. Only a cluster outside of the zone `home` has `zone`.
 */
export const clusterLinks = [
  "cluster",
  "zone",
  "role",
  "externalId",
  "region",
  "eks",
  "secret",
  "network",
  "accessEntry",
  "identity",
  "authorization",
  "version",
] as const;
export type ClusterLink = (typeof clusterLinks)[number];

/**
 * - `ok`; `limited`: the link holds, but lacks something that a fleet may need;
 * - `broken`: nothing works until it is fixed; `unknown`: it could not be checked; `skipped`: a link before it does not
 *   hold.
 */
export type LinkState = "ok" | "limited" | "broken" | "unknown" | "skipped";

export interface LinkFinding {
  readonly link: ClusterLink;
  readonly state: LinkState;
  /** What was checked: an ARN, an address, a version. */
  readonly value?: string;
  /** The usual reason, such as `RoleDenied`. */
  readonly code?: string;
  readonly message?: string;
  /** The remedy: a command where there is one. */
  readonly remedy?: string;
}

export interface ClusterCheck {
  /** Id of the request that it answers. */
  readonly id: string;
  readonly at: string;
  readonly links: readonly LinkFinding[];
}

export type CheckResult = "ok" | "limited" | "broken" | "unknown";

/** The worst state of the links. */
export function resultOf(links: readonly LinkFinding[]): CheckResult {
  const states = new Set(links.map(({ state }) => state));
  return (["broken", "unknown", "limited"] as const).find((state) => states.has(state)) ?? "ok";
}
