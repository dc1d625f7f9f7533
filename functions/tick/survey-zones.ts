import type { TickPorts } from "#functions/tick/claim-due.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { silenceUpdate, type ZoneRow } from "#shared/fleet/rows/zone-row.ts";

export type ZonesPorts = Pick<TickPorts, "table" | "clock" | "metrics"> & {
  /** The zones of the installation besides `home`. */
  readonly zones?: ReadonlySet<string>;
  /** The zones whose queues did not take the last message. */
  readonly deafZones?: () => ReadonlySet<string>;
};

/** Zones that account for their unreachable clusters: their workers get no messages, do not run, or reach none of them. */
export type TroubledZones = ReadonlySet<string>;

/** Longer than the time between two tries of a cluster that does not answer. */
const idleSeconds = 600;
const clustersAtOnce = 100;
/** The server was not reached at all; other reasons are about one cluster. */
const noAnswer: StatedReason = "Unreachable";

/**
 * Finds zones whose workers reach none of their clusters, notes that in the zone's row, and reports it. One cluster that
 * answers is enough for a zone, and is asked first the next time: only a zone without such a cluster has all its rows read.
 * A zone whose queue takes no messages is reported likewise.
 */
export function zonesSurvey(ports: ZonesPorts): () => Promise<TroubledZones> {
  const { table, clock, metrics, zones = new Set(), deafZones = () => new Set() } = ports;
  const witnesses = new Map<string, string>();
  return async () => {
    if (zones.size === 0) return new Set();
    const found = await table.getMany([...zones].map(keys.zone), { newer: "kept" });
    const rows = new Map(found.flatMap((row) => (row.type === "Zone" ? [[keyText(row), row] as const] : [])));
    const silent = await silentZones(zones, witnesses, ports);
    const deaf = deafZones();
    const troubled = new Set([...silent.keys(), ...deaf]);
    for (const zone of zones) {
      const row = rows.get(keyText(keys.zone(zone)));
      const since = silent.get(zone);
      if (since !== undefined || deaf.has(zone)) metrics.count("SilentZones", 1, { zone });
      if (row !== undefined && row.silentSince !== since) await table.update(silenceUpdate(zone, since));
      if (isIdle(row, clock.now())) troubled.add(zone);
    }
    return troubled;
  };
}

function isIdle(row: ZoneRow | undefined, now: Date): boolean {
  return row === undefined || later(row.workedAt, idleSeconds) <= now.toISOString();
}

/** Since when no cluster of a zone answers, by zone. */
async function silentZones(
  zones: ReadonlySet<string>,
  witnesses: Map<string, string>,
  { table }: ZonesPorts,
): Promise<ReadonlyMap<string, string>> {
  const asked = [...zones].flatMap((zone) => witnesses.get(zone) ?? []);
  const known = new Set((await clustersOf(asked, table)).filter(answers).map(({ name }) => name));
  const unsure = [...zones].filter((zone) => !known.has(witnesses.get(zone) ?? ""));
  if (unsure.length === 0) return new Map();
  const members = new Map<string, string[]>(unsure.map((zone) => [zone, []]));
  for await (const row of allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })))
    if (row.type === "Fleet") members.get(zoneOfEntry(row))?.push(row.name);
  const silent = new Map<string, string>();
  for (const [zone, names] of members) {
    const since = await silentSince(names, { table, found: (witness) => witnesses.set(zone, witness) });
    if (since !== undefined) silent.set(zone, since);
  }
  return silent;
}

/** @returns undefined when one of the clusters answers, and when none was ever asked. */
async function silentSince(
  names: readonly string[],
  { table, found }: Pick<ZonesPorts, "table"> & { readonly found: (witness: string) => void },
): Promise<string | undefined> {
  let last: string | undefined;
  for (const part of inParts(names, clustersAtOnce)) {
    const rows = await clustersOf(part, table);
    const witness = rows.find(answers);
    if (witness !== undefined) found(witness.name);
    if (witness !== undefined) return undefined;
    for (const { since } of rows.flatMap((row) => reachable(row) ?? [])) last = since > (last ?? "") ? since : last;
  }
  return last;
}

async function clustersOf(names: readonly string[], table: ZonesPorts["table"]): Promise<readonly ClusterRow[]> {
  const rows = await table.getMany(names.map(keys.cluster), { newer: "kept" });
  return rows.filter((row) => row.type === "Cluster");
}

function reachable({ status }: ClusterRow) {
  return status.conditions.find(({ type }) => type === "Reachable");
}

/** A cluster that refuses a token, or that is another one than expected, answers. */
function answers(row: ClusterRow): boolean {
  const condition = reachable(row);
  return condition !== undefined && (condition.status !== "False" || condition.reason !== noAnswer);
}
