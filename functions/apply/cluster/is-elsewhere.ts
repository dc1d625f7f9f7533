import type { WorkerZone } from "#functions/apply/cluster/worker-ports.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { servesName } from "#shared/fleet/served-names.ts";

/**
 * Whether the workers of another zone reach the cluster: it moved there after the message was sent. Its rows stay due,
 * and the next tick wakes the right workers. A zone that the installation does not have is none, and neither is one that
 * does not serve the name of the cluster: `home` reports both.
 */
export function isElsewhere(cluster: ClusterRow | undefined, { own, others, served }: WorkerZone): boolean {
  if (cluster === undefined) return false;
  const zone = zoneOf(cluster);
  return (
    zone !== own && (own !== homeZone || (others.includes(zone) && servesName(served ?? new Map(), zone, cluster.name)))
  );
}
