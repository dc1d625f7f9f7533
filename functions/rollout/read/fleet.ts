import { withEffectiveValues } from "#shared/adapters/read-cluster-values.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { ClusterSelection } from "#shared/fleet/kinds/cluster-selection.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { type FleetChanges, fleetParts, valuesPart, versionsText } from "#shared/fleet/rows/fleet-version.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type Row, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import { isOfType, type RowRead } from "#shared/fleet/rows/stored-row.ts";
import type { Precondition, Table, Write } from "#shared/ports.ts";

/**
 * A page of the whole directory has thousands of entries, and a transaction checks this many of them besides everything
 * else.
 */
const mostAsked = 40;

export interface Fleet {
  /** The entries that were read, by name. */
  readonly clusters: readonly FleetRow[];
  /** Names of registered clusters whose labels and values only a newer version can read. */
  readonly unreadable: ReadonlySet<string>;
  /** Named clusters that are not registered. */
  readonly missing: readonly string[];
  /** Whether the entry of a cluster was read, or does not exist; any other is as it was. */
  readonly isRead: (cluster: string) => boolean;
  /**
   * The check that fails when the entry of a cluster has changed since it was read; undefined for an entry that was not
   * read.
   */
  readonly checkOf: (cluster: string) => Write | undefined;
}

/** The registered clusters that a selection may take: the named ones, or every one. */
export async function readFleet({ names, notNames = [] }: ClusterSelection, table: Table): Promise<Fleet> {
  const rows =
    names === undefined
      ? await Array.fromAsync(allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })))
      : await table.getMany(names.map(keys.fleet), { newer: "kept" });
  const registered = new Set([...rows.map(clusterOfKey), ...notNames]);
  const missing = (names ?? []).filter((name) => !registered.has(name));
  const checkOf = checksOf(rows, (cluster) => names === undefined || names.includes(cluster));
  return { ...(await fleetOf(rows, table)), missing, isRead: () => true, checkOf };
}

/**
 * Reads only what has changed for a selection without names: the entries that were written, and those of members whose
 * values changed.
 * @returns undefined when the changes are unknown, or so many that the whole directory is read.
 */
export async function readChanged(
  since: FleetChanges | undefined,
  members: readonly string[],
  table: Table,
): Promise<Fleet | undefined> {
  if (since === undefined) return undefined;
  const asked = since.clusters.union(new Set(since.values ? members : []));
  if (asked.size > mostAsked) return undefined;
  const rows = await table.getMany([...asked].map(keys.fleet), { newer: "kept" });
  const isRead = (cluster: string) => asked.has(cluster);
  return { ...(await fleetOf(rows, table)), missing: [], isRead, checkOf: checksOf(rows, isRead) };
}

/** Whether a cluster that only a newer version could read can be read by now, or is no longer registered. */
export async function someAreReadable(clusters: readonly string[], table: Table): Promise<boolean> {
  if (clusters.length === 0) return false;
  const rows = await table.getMany(clusters.map(keys.fleet), { newer: "kept" });
  return rows.filter(isNewer).length < clusters.length;
}

function checksOf(rows: readonly Row[], isRead: (cluster: string) => boolean): Fleet["checkOf"] {
  const byCluster = new Map(rows.map((row) => [clusterOfKey(row), row]));
  return (cluster) => {
    const row = byCluster.get(cluster);
    // A cluster that cannot be read is asked for at each check.
    if (!isRead(cluster) || (row !== undefined && isNewer(row))) return undefined;
    return { check: keys.fleet(cluster), when: row === undefined ? "absent" : asRead(row) };
  };
}

/** A cluster that was registered again may have the version of the former one. */
function asRead(row: Row): readonly Precondition[] {
  const version = { attribute: "version", equals: row.version };
  return "uid" in row && typeof row.uid === "string" ? [version, { attribute: "uid", equals: row.uid }] : [version];
}

async function fleetOf(
  rows: readonly RowRead<"Fleet", "kept">[],
  table: Table,
): Promise<Pick<Fleet, "clusters" | "unreadable">> {
  const readable = rows.filter((row) => row.type === "Fleet");
  const unreadable = new Set(rows.filter(isNewer).map(clusterOfKey));
  return { clusters: await withEffectiveValues(readable, table), unreadable };
}

/**
 * The rows that the version is read from, whatever the size of the fleet: the versions of the directory's parts, or the
 * few named rows; and the version of the ClusterValues.
 */
export function fleetVersionKeys(selection: ClusterSelection): readonly RowKeyOf<"Fleet" | "FleetVersion">[] {
  const { names = [] } = selection;
  const own = isFew(selection) ? names.map(keys.fleet) : fleetParts.map(keys.fleetVersion);
  return [...own, keys.fleetVersion(valuesPart)];
}

function isFew({ names }: ClusterSelection): boolean {
  return names !== undefined && names.length <= fleetParts.length;
}

/**
 * A text that changes when `readFleet` may find something else.
 * @param rows - rows with these keys, possibly among others.
 */
export function fleetVersionOf(selection: ClusterSelection, rows: readonly Row[]): string {
  const versions = rows.filter((row) => isOfType(row, "FleetVersion"));
  if (!isFew(selection)) return versionsText(versions);
  const known = [...rows.filter((row) => keys.fleet.parse(row) !== undefined), ...versions];
  return digestOf(known.map((row) => [row.sk, row.version, "uid" in row ? row.uid : ""]).sort());
}

/**
 * Whether the list of members fits the present fleet; asked once, after the clusters were read. A cluster that is not
 * where the list has it may return before another list is made, which would not show that: it waits until one is made.
 */
export function listCheck({ row, fleetVersion }: Pick<Known, "row" | "fleetVersion">, table: Table) {
  let answer: Promise<boolean> | undefined;
  const ask = async () => {
    const { clusters } = relationOf(row);
    const rows = await table.getMany(fleetVersionKeys(clusters), { newer: "kept" });
    return fleetVersionOf(clusters, rows) === fleetVersion;
  };
  return (): Promise<boolean> => {
    answer ??= ask();
    return answer;
  };
}
