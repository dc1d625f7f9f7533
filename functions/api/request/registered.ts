import { allItems } from "#shared/base/all-pages.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/** Every registered cluster, except those whose labels only a newer version can read. */
export async function registered(table: Table): Promise<readonly SelectableCluster[]> {
  const rows = await Array.fromAsync(allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })));
  return rows.filter((row) => row.type === "Fleet");
}
