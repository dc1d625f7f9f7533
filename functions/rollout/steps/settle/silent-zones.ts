/** Clusters whose zone is down: their attempts end as unreachable, because nobody would report that. */
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { SeenSlot } from "#shared/fleet/rollout/facts.ts";
import { isWorkerSilent } from "#shared/fleet/rollout/judge.ts";
import { servingZone } from "#shared/fleet/rows/cluster-entry.ts";
import { later, laterOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";
import { downFrom, downText } from "#shared/fleet/rows/zone-row.ts";
import { slotState } from "#shared/fleet/waits/slot-state.ts";

/** Seconds after the deadline that the planner has set itself: so late, it was not called, and workers were not called either. */
const lateSeconds = 120;
/** How long workers then have to say that they run. */
const graceSeconds = 180;
/** A planner that is always late finds zones down nevertheless. */
const graceEverySeconds = 3600;
/** A zone that was found down costs no time again for so long. After that, nobody may have called its workers for long. */
const rememberedSeconds = 86_400;

type Judged = Omit<SeenSlot, "lease">;

/**
 * A cluster whose worker is silent is unreachable when no worker of its zone has run for as long as an attempt may take.
 * Otherwise the zone's workers are busy, which counts against nothing. In a zone that was found down, and where no worker
 * has run since, an assignment takes no time from clusters of other zones. After an outage of everything, the planner may
 * be the first that runs again, and the silence of the workers says nothing yet. It says nothing either when the cluster
 * was assigned while other workers were responsible: before there were zones, or before it moved.
 */
export async function withZones(
  transaction: Transaction,
  judged: readonly Judged[],
  ports: PlannerPorts,
): Promise<readonly Judged[]> {
  const { zones = new Set() } = ports;
  const { at } = transaction;
  const { downZones = [], deadline = at, zonesDownFrom = "" } = transaction.rolloutState;
  const isLate = later(deadline, lateSeconds) < at;
  const mayWait = zonesDownFrom === "" || later(zonesDownFrom, graceEverySeconds) <= at;
  const notBefore = isLate && mayWait ? later(at, graceSeconds) : zonesDownFrom;
  const remembered = downZones.filter(
    ({ zone, since }) => isZone(zone, zones) && since !== undefined && later(since, rememberedSeconds) > at,
  );
  const waiting = zones.size > 0 ? judged.filter(isWaiting) : [];
  const silent = waiting.filter(({ slot, syncs, clock }) => isWorkerSilent(slot, syncs, clock));
  const asked = new Set((remembered.length > 0 ? waiting : silent).map(({ slot }) => slot.cluster));
  const { zoneOf, rowOf } = await readPlaces([...asked], ports);
  const used = new Set(zoneOf.values());
  const stillDown = remembered.filter(({ zone, workedAt }) => {
    const row = rowOf(zone);
    return !used.has(zone) || (row?.type === "Zone" ? row.workedAt === workedAt : row === undefined);
  });
  const down = new Map(stillDown.map((each) => [each.zone, each]));
  const seen = judged.map((one): Judged => {
    const { slot, clock } = one;
    const zone = asked.has(slot.cluster) ? zoneOf.get(slot.cluster) : undefined;
    const row = zone === undefined ? undefined : rowOf(zone);
    // A worker of a newer version wrote such a row, so that workers run.
    if (zone === undefined || (row !== undefined && isNewer(row))) return one;
    if (!down.has(zone) || isBegunIn(one)) {
      if (!silent.includes(one)) return one;
      const isMoved = slot.zone?.name !== zone;
      const since = isMoved ? at : laterOf(slot.since, slot.zone.since);
      const from = laterOf(downFrom(row, { since, seconds: clock.progressSeconds }), notBefore);
      if (from > at) return { ...one, downFrom: from, ...(isMoved ? { movedTo: zone } : {}) };
      down.set(zone, { zone, since: at, ...defined({ workedAt: row?.workedAt }) });
    }
    const reason = because("ZoneDown", downText(zone, row));
    return { ...one, verdict: { state: "Unreachable", reason }, paused: { reason, at, zone } };
  });
  if (notBefore !== zonesDownFrom) transaction.edit({ zonesDownFrom: notBefore });
  const after = [...down.values()];
  if (canonicalJson(after) !== canonicalJson(downZones))
    transaction.edit({ downZones: after.length === 0 ? undefined : after });
  return seen;
}

/** The zones of clusters that have an entry, and the rows of these zones. */
async function readPlaces(clusters: readonly string[], ports: PlannerPorts) {
  const { table } = ports;
  const entries = await table.getMany(clusters.map(keys.fleet), { newer: "kept" });
  const zoneOf = new Map(
    entries.flatMap((row) => (isNewer(row) ? [] : [[row.name, servingZone(row, ports)] as const])),
  );
  const rows = await table.getMany([...new Set(zoneOf.values())].map(keys.zone), { newer: "kept" });
  const found = new Map(rows.map((row) => [keyText(row), row]));
  return { zoneOf, rowOf: (zone: string) => found.get(keyText(keys.zone(zone))) };
}

/** With `home` alone, the workers do not say that they run. */
function isZone(name: string, zones: ReadonlySet<string>): boolean {
  return zones.has(name) || (name === homeZone && zones.size > 0);
}

/** An attempt that may still begin, or go on. */
function isWaiting({ slot, verdict, paused, clock }: Judged): boolean {
  const isHeld = clock.pausedAt !== undefined || clock.freezing?.freeze !== undefined;
  return slot.releasing === undefined && verdict.state === "Assigned" && paused === undefined && !isHeld;
}

function isBegunIn({ slot, syncs }: Judged): boolean {
  return slotState(slot, syncs) !== "Assigned";
}
