import { clusterTargets } from "#test/contract/targets.ts";
import { embeddedFleet, type FleetTarget } from "#test/support/fleet.ts";
import { proxiedFleet } from "#test/support/proxied-fleet.ts";

const [embedded, ...real] = clusterTargets;

/** Embedded API servers always, and real ones where their binaries are at hand: the same tests hold on both. */
export const fleetTargets: readonly FleetTarget[] = [embeddedFleet, ...real.map(proxiedFleet)];

/**
 * What the planner decides and the commands say is the same whatever the API server: `npm run nightly -- stories` plays it
 * on real ones, too.
 */
export const storyTargets: readonly FleetTarget[] =
  process.env.STARLING_STORIES === "everywhere" ? fleetTargets : [embeddedFleet];

/** What real servers are driven through, around embedded ones: so that it is tested where there are no others. */
export const proxiedEmbedded: readonly FleetTarget[] =
  embedded === undefined ? [] : [proxiedFleet({ ...embedded, name: "embedded API servers behind the proxy" })];

export const realServers = real.length > 0 ? "found" : "missing";

/** Said once, where somebody looks for them. */
export const noRealServers =
  "skipped on kube-apiserver: neither KUBEBUILDER_ASSETS nor /usr/local/kubebuilder/bin has kube-apiserver and etcd";
