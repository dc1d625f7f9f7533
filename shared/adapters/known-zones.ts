import { readFleetVersions } from "#shared/adapters/fleet-versions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { fleetChanges, versionsText } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/** The zones of clusters, by their names. */
export type ZonesOf = (clusters: readonly string[]) => Promise<ReadonlyMap<string, string>>;

type Reads = Pick<Table, "getMany" | "query">;

/** A cluster without an entry, or with one that only a newer version can read, belongs to `home`: its worker says why. */
export async function readZones(
  clusters: readonly string[],
  table: Pick<Table, "getMany">,
): Promise<ReadonlyMap<string, string>> {
  const entries = await table.getMany(clusters.map(keys.fleet), { newer: "kept" });
  const found = entries.flatMap((row) => (row.type === "Fleet" ? [[row.name, zoneOfEntry(row)] as const] : []));
  return new Map([...clusters.map((cluster) => [cluster, homeZone] as const), ...found]);
}

/**
 * Milliseconds in which the versions are not read again: for the messages of one tick, which are sent in parts. A message
 * that was sent right before a cluster moved goes to the former zone as well.
 */
const freshMs = 10_000;

/**
 * Remembers the zones of clusters for as long as the versions of the fleet's directory show that nobody has written their
 * entries. So a tick costs one request for all clusters, and not one read for each.
 */
export function knownZones({ table, clock }: { readonly table: Reads; readonly clock: Clock }): ZonesOf {
  let zones = new Map<string, string>();
  let versions: string | undefined;
  let asked: { readonly at: number; readonly done: Promise<void> } | undefined;

  /** The versions are read before the entries, so that a write in between is found by the next call. */
  async function readVersions(): Promise<void> {
    const rows = await readFleetVersions(table);
    if (rows === undefined) return forget(undefined);
    const changes = versions === undefined ? undefined : fleetChanges(versions, rows);
    if (changes === undefined) return forget(versionsText(rows));
    versions = versionsText(rows);
    for (const cluster of changes.clusters) zones.delete(cluster);
  }

  function forget(now: string | undefined): void {
    versions = now;
    zones = new Map();
  }

  async function sameAsInTable(): Promise<void> {
    const now = clock.now().getTime();
    if (asked === undefined || Math.abs(now - asked.at) > freshMs) asked = { at: now, done: readVersions() };
    const { done } = asked;
    try {
      await done;
    } catch (error) {
      asked = undefined;
      throw error;
    }
  }

  return async (clusters) => {
    await sameAsInTable();
    const [known, since] = [zones, versions];
    const unknown = clusters.filter((cluster) => !known.has(cluster));
    if (unknown.length === 0) return known;
    const read = await readZones(unknown, table);
    if (since !== undefined && since === versions) for (const [cluster, zone] of read) known.set(cluster, zone);
    return new Map([...known, ...read]);
  };
}
