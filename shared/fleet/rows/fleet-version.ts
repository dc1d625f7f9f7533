/**
 * The fleet's directory has versions, so that whoever computed something from all of it can tell by a few small rows that it
 * is still so, and which clusters are others since. More than one, so that writers of different clusters seldom meet.
 */

import { hashOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetVersionRow } from "#shared/fleet/rows/object-rows.ts";
import { type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";

const partCount = 16;

export const fleetParts: readonly number[] = Array.from({ length: partCount }, (_, part) => part);

/** Behind those of the clusters: the ClusterValues, of which every cluster may have some. */
export const valuesPart = partCount;

const allParts: readonly number[] = [...fleetParts, valuesPart];

/** A row of them stays within the kilobyte that a write is counted by. */
const mostNotedBytes = 600;

/** Goes into every transaction that writes, or deletes, a ClusterValues. */
export function valuesVersionUpdate() {
  return versionUpdate(valuesPart);
}

/** The row of the version that grows with the entry of a cluster. */
export function fleetVersionKey(cluster: string): RowKeyOf<"FleetVersion"> {
  return keys.fleetVersion(hashOf(cluster) % partCount);
}

/** Grows the version, and names nobody: whoever goes by it reads the whole directory. */
export function fleetVersionUpdate(cluster: string) {
  return versionUpdate(hashOf(cluster) % partCount);
}

/**
 * Grows the version by one for each cluster, and notes their names, on condition that nobody does meanwhile.
 * @param clusters - all of the part of this row.
 */
export function notedVersionUpdate(
  key: RowKeyOf<"FleetVersion">,
  clusters: readonly string[],
  before: FleetVersionRow | undefined,
) {
  const { version = 0, noted } = before ?? {};
  // A version that names nobody has no place in the list: what was noted before it is of no use any more.
  const known = noted?.upTo === version ? noted.clusters : [];
  const all = [...known, ...clusters];
  const fitting = all.filter((_, index) => all.slice(index).join().length <= mostNotedBytes);
  const when =
    before === undefined ? { attribute: "version", absent: true as const } : { attribute: "version", equals: version };
  return {
    update: key,
    set: {
      type: "FleetVersion",
      schema: rowSchema,
      noted: { upTo: version + clusters.length, clusters: fitting },
    },
    add: { version: clusters.length },
    when: [when],
  };
}

function versionUpdate(part: number) {
  return {
    update: keys.fleetVersion(part),
    set: { type: "FleetVersion", schema: rowSchema },
    add: { version: 1 },
  };
}

/** What is other in the fleet's directory than at an earlier time. */
export interface FleetChanges {
  /** Names of the clusters whose entries were written, or deleted. */
  readonly clusters: ReadonlySet<string>;
  /** A ClusterValues was written: any cluster may have other values. */
  readonly values: boolean;
}

/** The versions of all parts, in one line. */
export function versionsText(rows: readonly FleetVersionRow[]): string {
  const bySk = new Map(rows.map((row) => [row.sk, row.version]));
  return allParts.map((part) => bySk.get(keys.fleetVersion(part).sk) ?? 0).join(".");
}

/**
 * @param since - the versions of then, as `versionsText` has them.
 * @returns undefined when that cannot be said: more was changed than is noted, a version before this one wrote an entry, or
 *   the versions are older than those (a restored table).
 */
export function fleetChanges(since: string, rows: readonly FleetVersionRow[]): FleetChanges | undefined {
  const before = since.split(".").map(Number);
  if (before.length !== allParts.length || before.some(Number.isNaN)) return undefined;
  const bySk = new Map(rows.map((row) => [row.sk, row]));
  const clusters = new Set<string>();
  for (const [part, version] of before.entries()) {
    const row = bySk.get(keys.fleetVersion(part).sk);
    const grown = (row?.version ?? 0) - version;
    if (grown === 0 || (part === valuesPart && grown > 0)) continue;
    const { upTo, clusters: noted = [] } = row?.noted ?? {};
    if (grown < 0 || upTo !== row?.version || noted.length < grown) return undefined;
    for (const name of noted.slice(-grown)) clusters.add(name);
  }
  const values = (bySk.get(keys.fleetVersion(valuesPart).sk)?.version ?? 0) !== before[valuesPart];
  return { clusters, values };
}

/** So many transactions of a part may be under way at once, and seen in its version before they are in its entries. */
const newestOfPart = 3;

/** The clusters that were written last, of each part: of the others nobody reads what was there before. */
export function lastWritten(rows: readonly FleetVersionRow[]): readonly string[] {
  return rows.flatMap(({ version, noted }) => (noted?.upTo === version ? noted.clusters.slice(-newestOfPart) : []));
}
