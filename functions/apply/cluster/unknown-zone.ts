import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";

/** Why no worker reaches a cluster whose zone does not exist, and what to do. */
export function unknownZone(cluster: Pick<ClusterRow, "name" | "spec" | "discovered">): {
  readonly message: string;
  readonly remedy: string;
} {
  const { name, spec, discovered } = cluster;
  const zone = zoneOf(cluster);
  const lacks = `a zone that the installation does not have: ${zone}`;
  const add = `add ${zone} to the setting zones and deploy`;
  if (discovered === undefined || spec.access?.zone !== undefined) {
    const message = `spec.access.zone names ${lacks}`;
    return { message, remedy: `${add}, or correct spec.access.zone of Cluster ${name}` };
  }
  const by = `ClusterDiscovery ${discovered.by}`;
  const others = `correct spec.access of ${by}, or write spec.access.zone into Cluster ${name}`;
  return { message: `${by} put the cluster into ${lacks}`, remedy: `${add}, ${others}` };
}
