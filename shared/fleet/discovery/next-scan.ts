import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { type DiscoveryRow, nobodyScans } from "#shared/fleet/rows/discovery-rows.ts";
import { backoffSeconds, jittered, later } from "#shared/fleet/rows/due.ts";

/** A failed scan is not repeated sooner. */
const leastSeconds = 30;

/** When a ClusterDiscovery scans next: at once after a change of its spec, otherwise after its interval. */
export function nextScan(
  row: Pick<DiscoveryRow, "spec" | "status" | "generation" | "createdAt" | "uid" | "scanUntil">,
): string | undefined {
  const { scannedAt, observedGeneration } = row.status;
  if (row.scanUntil !== undefined && row.scanUntil !== nobodyScans) return row.scanUntil;
  if (scannedAt === undefined || observedGeneration !== row.generation) return row.createdAt;
  const interval = secondsOf(row.spec.interval);
  const { failures = 0 } = row.status;
  if (failures > 0) return later(scannedAt, Math.min(interval, leastSeconds + backoffSeconds(failures)));
  return later(scannedAt, jittered(interval, `${row.uid}${scannedAt}`));
}
