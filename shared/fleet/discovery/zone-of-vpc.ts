/** The zone of a discovered cluster: pure. */
import { ownValue } from "#shared/base/own-value.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";

/** The zone that reaches each VPC by the setting `zones`. */
export type ZonesOfVpcs = ReadonlyMap<string, string>;

/**
 * The ClusterDiscovery goes before the setting, and its table before the zone of all its clusters.
 * @returns undefined when nothing says it, so that the cluster is reached from `home`.
 */
export function discoveredZone(
  { access }: Pick<ClusterDiscoverySpec, "access">,
  vpcId: string | undefined,
  zonesOfVpcs: ZonesOfVpcs,
): string | undefined {
  if (vpcId === undefined) return access?.zone;
  return ownValue(access?.zonesByVpc ?? {}, vpcId) ?? access?.zone ?? zonesOfVpcs.get(vpcId);
}
