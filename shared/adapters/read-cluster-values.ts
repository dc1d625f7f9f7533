import { allItems } from "#shared/base/all-pages.ts";
import { effectiveValues, inOrder } from "#shared/fleet/effective-values.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterValuesRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

/**
 * Every ClusterValues, in the order in which they are merged. Nobody knows which clusters a row of a newer version
 * selects, so that one such row makes all values unknown.
 * @throws StarlingError `NewerRow`
 */
export async function readClusterValues(table: Table): Promise<readonly ClusterValuesRow[]> {
  return inOrder(await Array.fromAsync(allItems((start) => table.query({ ...ranges.clusterValues, ...start }))));
}

/** Entries of the fleet with their effective values. @throws StarlingError `NewerRow` */
export async function withEffectiveValues(fleet: readonly FleetRow[], table: Table): Promise<readonly FleetRow[]> {
  if (fleet.length === 0) return fleet;
  const ordered = await readClusterValues(table);
  return fleet.map((row) => ({ ...row, values: effectiveValues(row, ordered) }));
}
