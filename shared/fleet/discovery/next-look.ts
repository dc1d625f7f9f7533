import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { type DiscoveryRow, nobodyLooks } from "#shared/fleet/rows/discovery-rows.ts";
import { backoffSeconds, jittered, later } from "#shared/fleet/rows/due.ts";

/** What failed is not asked sooner. */
const leastSeconds = 30;

/** When a ClusterDiscovery looks next: at once after a change of its spec, else after its interval. */
export function nextLook(
  row: Pick<DiscoveryRow, "spec" | "status" | "generation" | "createdAt" | "uid" | "lookUntil">,
): string | undefined {
  const { lookedAt, observedGeneration } = row.status;
  if (row.lookUntil !== undefined && row.lookUntil !== nobodyLooks) return row.lookUntil;
  if (lookedAt === undefined || observedGeneration !== row.generation) return row.createdAt;
  const interval = secondsOf(row.spec.interval);
  const { failures = 0 } = row.status;
  if (failures > 0) return later(lookedAt, Math.min(interval, leastSeconds + backoffSeconds(failures)));
  return later(lookedAt, jittered(interval, `${row.uid}${lookedAt}`));
}
