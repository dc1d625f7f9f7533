/** The way from Starling to a cluster, link by link, and what was found of each: what `starling cluster check` shows. */

/** In their order: a link is looked at when those before it hold. A cluster with an endpoint has `secret` for the first four. */
export const clusterLinks = [
  "cluster",
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
 * - `ok`; `limited`: it holds, and not everything that a fleet may need is there;
 * - `broken`: nothing works before it is mended; `unknown`: it could not be found out; `skipped`: one before it is neither.
 */
export type LinkState = "ok" | "limited" | "broken" | "unknown" | "skipped";

export interface LinkFinding {
  readonly link: ClusterLink;
  readonly state: LinkState;
  /** What was looked at: an ARN, an address, a version. */
  readonly value?: string;
  /** The reason as everywhere else, such as `RoleDenied`. */
  readonly code?: string;
  readonly message?: string;
  /** What mends it: a command where there is one. */
  readonly remedy?: string;
}

export interface ClusterCheck {
  /** Of the request that it answers. */
  readonly id: string;
  readonly at: string;
  readonly links: readonly LinkFinding[];
}

export type CheckResult = "ok" | "limited" | "broken" | "unknown";

/** The worst of the links. */
export function resultOf(links: readonly LinkFinding[]): CheckResult {
  const states = new Set(links.map(({ state }) => state));
  return (["broken", "unknown", "limited"] as const).find((state) => states.has(state)) ?? "ok";
}
