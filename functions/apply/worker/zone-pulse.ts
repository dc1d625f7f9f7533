import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { pulseSeconds, zoneUpdate } from "#shared/fleet/rows/zone-row.ts";

/**
 * Says in the row of the worker's zone that a worker runs there, at most once a minute for each sandbox. An installation
 * whose only zone is `home` does not read that.
 */
export function zonePulse({ zone, table, clock }: Pick<WorkerPorts, "zone" | "table" | "clock">): () => Promise<void> {
  const isOnly = zone.own === homeZone && zone.others.length === 0;
  let next = "";
  return async () => {
    const now = clock.now();
    if (isOnly || now.toISOString() < next) return;
    await table.update(zoneUpdate(zone.own, now));
    next = later(now, pulseSeconds);
  };
}
