import { withEffectiveValues } from "#shared/adapters/cluster-values.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { ClusterSelection } from "#shared/fleet/kinds/cluster-selection.ts";
import { fleetParts, valuesPart } from "#shared/fleet/rows/fleet-version.ts";
import { clusterOf, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type Row, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface Fleet {
  /** By name. */
  readonly clusters: readonly FleetRow[];
  /** Names of those that are registered, and whose labels and values only a newer version can read. */
  readonly unreadable: ReadonlySet<string>;
  /** Clusters that are named, and not registered. */
  readonly missing: readonly string[];
}

/** The registered clusters that a selection may take: those that it names, or every one. */
export async function readFleet({ names, notNames = [] }: ClusterSelection, table: Table): Promise<Fleet> {
  const rows =
    names === undefined
      ? await Array.fromAsync(allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })))
      : await table.getMany(names.map(keys.fleet), { newer: "kept" });
  const clusters = await withEffectiveValues(
    rows.filter((row) => row.type === "Fleet"),
    table,
  );
  const registered = new Set([...rows.map(clusterOf), ...notNames]);
  return {
    clusters,
    unreadable: new Set(rows.filter(isNewer).map(clusterOf)),
    missing: (names ?? []).filter((name) => !registered.has(name)),
  };
}

/**
 * What is to be read for the version, whatever the size of the fleet: the versions of its parts, or the few rows that are
 * named; and that of the ClusterValues.
 */
export function fleetVersionKeys({ names }: ClusterSelection): readonly RowKeyOf<"Fleet" | "FleetVersion">[] {
  const isFew = names !== undefined && names.length <= fleetParts.length;
  return [...(isFew ? names.map(keys.fleet) : fleetParts.map(keys.fleetVersion)), keys.fleetVersion(valuesPart)];
}

/** Another one, and `readFleet` may find something else. @param rows - those of these keys among others. */
export function fleetVersionOf(rows: readonly Row[]): string {
  const known = rows.filter((row) => keys.fleet.parse(row) !== undefined || row.type === "FleetVersion");
  return digestOf(known.map((row) => [row.sk, row.version, "uid" in row ? row.uid : ""]).sort());
}
