import { clusterTargets } from "#test/contract/targets.ts";
import { embeddedFleet, type FleetTarget } from "#test/support/fleet.ts";
import { proxiedFleet } from "#test/support/proxied-fleet.ts";

const [embedded, ...real] = clusterTargets;

/** Embedded API servers, and real ones if their programs exist. The same tests run on both. */
export const fleetTargets: readonly FleetTarget[] = [embeddedFleet, ...real.map(proxiedFleet)];

/**
 * The planner's decisions and the commands' output do not depend on the API server. `npm run nightly -- stories` also
 * runs these tests on real ones.
 */
export const storyTargets: readonly FleetTarget[] =
  process.env.STARLING_STORIES === "everywhere" ? fleetTargets : [embeddedFleet];

/** The proxy for real servers around embedded ones, so that it is tested on machines without real ones. */
export const proxiedEmbedded: readonly FleetTarget[] =
  embedded === undefined ? [] : [proxiedFleet({ ...embedded, name: "embedded API servers behind the proxy" })];

export const realServers = real.length > 0 ? "found" : "missing";

/** The message for a machine without real API servers; it is printed once. */
export const noRealServers =
  "skipped on kube-apiserver: neither KUBEBUILDER_ASSETS nor /usr/local/kubebuilder/bin has kube-apiserver and etcd";
