/** Clusters whose zone is down: their attempts end as unreachable, because nobody would report that. */
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import type { SeenSlot } from "#shared/fleet/rollout/facts.ts";
import { isWorkerSilent } from "#shared/fleet/rollout/judge.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import { downFrom, downText } from "#shared/fleet/rows/zone-row.ts";

type Judged = Omit<SeenSlot, "lease">;

/**
 * A cluster whose worker is silent is unreachable when no worker of its zone has run for as long as an attempt may take.
 * Otherwise the zone's workers are busy, which counts against nothing.
 */
export async function withZones(
  { at }: Pick<Transaction, "at">,
  judged: readonly Judged[],
  { isZoned = false, table }: PlannerPorts,
): Promise<readonly Judged[]> {
  const silent = new Set(isZoned ? judged.filter(isWaiting).map(({ slot }) => slot.cluster) : []);
  if (silent.size === 0) return judged;
  const entries = await table.getMany([...silent].map(keys.fleet), { newer: "kept" });
  const zoneOf = new Map(entries.flatMap((row) => (isNewer(row) ? [] : [[row.name, zoneOfEntry(row)] as const])));
  const rows = await table.getMany([...new Set(zoneOf.values())].map(keys.zone), { newer: "kept" });
  const found = new Map(rows.map((row) => [keyText(row), row]));
  return judged.map((one) => {
    const zone = silent.has(one.slot.cluster) ? zoneOf.get(one.slot.cluster) : undefined;
    const row = zone === undefined ? undefined : found.get(keyText(keys.zone(zone)));
    // A worker of a newer version wrote such a row, so that workers run.
    if (zone === undefined || (row !== undefined && isNewer(row))) return one;
    const from = downFrom(row, one.clock.progressSeconds);
    if (from > at) return { ...one, downFrom: from };
    const reason = because("ZoneDown", downText(zone, row));
    return { ...one, verdict: { state: "Unreachable", reason }, paused: { reason, at, zone } };
  });
}

function isWaiting({ slot, syncs, clock, verdict, paused }: Judged): boolean {
  return (
    slot.releasing === undefined &&
    verdict.state === "Assigned" &&
    paused === undefined &&
    isWorkerSilent(slot, syncs, clock)
  );
}
