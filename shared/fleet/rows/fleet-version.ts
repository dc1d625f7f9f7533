/**
 * The versions of the fleet's directory. The planner computes a group's members from the whole directory. These few small
 * rows show whether the directory is still the same, and which clusters have changed since. The directory has several
 * versions, so that writers of different clusters seldom conflict.
 */

import { hashOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetVersionRow } from "#shared/fleet/rows/object-rows.ts";
import { type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";

const partCount = 16;

export const fleetParts: readonly number[] = Array.from({ length: partCount }, (_, part) => part);

/** The part after those of the clusters: the ClusterValues, which may give values to any cluster. */
export const valuesPart = partCount;

const allParts: readonly number[] = [...fleetParts, valuesPart];

/** Keeps a row within one kilobyte, the size that DynamoDB counts as one write unit. */
const mostNotedBytes = 600;

/** Belongs into every transaction that writes or deletes a ClusterValues. */
export function valuesVersionUpdate() {
  return versionUpdate(valuesPart);
}

/** The key of the version that counts the writes of a cluster's entry. */
export function fleetVersionKey(cluster: string): RowKeyOf<"FleetVersion"> {
  return keys.fleetVersion(hashOf(cluster) % partCount);
}

/** Increments the version and names no cluster; its readers then read the whole directory. */
export function fleetVersionUpdate(cluster: string) {
  return versionUpdate(hashOf(cluster) % partCount);
}

/**
 * Increments the version by one for each cluster and notes their names, on condition that no other writer does meanwhile.
 * @param clusters - clusters of this row's part only.
 */
export function notedVersionUpdate(
  key: RowKeyOf<"FleetVersion">,
  clusters: readonly string[],
  before: FleetVersionRow | undefined,
) {
  const { version = 0, noted } = before ?? {};
  // A version that names no cluster leaves a gap in the list, so the names before it are useless.
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

/** How the fleet's directory differs from an earlier time. */
export interface FleetChanges {
  /** Names of the clusters whose entries were written, or deleted. */
  readonly clusters: ReadonlySet<string>;
  /** True when a ClusterValues was written: any cluster may have other values. */
  readonly values: boolean;
}

/** The versions of all parts, in one line. */
export function versionsText(rows: readonly FleetVersionRow[]): string {
  const bySk = new Map(rows.map((row) => [row.sk, row.version]));
  return allParts.map((part) => bySk.get(keys.fleetVersion(part).sk) ?? 0).join(".");
}

/**
 * @param since - the versions at the earlier time, in the form of `versionsText`.
 * @returns undefined when the changes are unknown: more clusters changed than are noted, an older release wrote an entry,
 *   or the versions are lower than `since` (a restored table).
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

/** So many transactions of a part may run at once. A reader may see them in the version before it sees their entries. */
const newestOfPart = 3;

/** The clusters of each part that were written last; only their entries may be read as they were before the write. */
export function lastWritten(rows: readonly FleetVersionRow[]): readonly string[] {
  return rows.flatMap(({ version, noted }) => (noted?.upTo === version ? noted.clusters.slice(-newestOfPart) : []));
}
