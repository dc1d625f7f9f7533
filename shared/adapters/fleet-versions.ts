import { allItems } from "#shared/base/all-pages.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetVersionRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/**
 * The versions of the parts of the fleet's directory. While they are the same, nobody has written an entry.
 * @returns undefined where a row of a newer version hides one of them.
 */
export async function readFleetVersions(table: Pick<Table, "query">): Promise<readonly FleetVersionRow[] | undefined> {
  const rows: FleetVersionRow[] = [];
  for await (const row of allItems((start) => table.query({ ...ranges.fleetVersions, newer: "kept", ...start }))) {
    if (isNewer(row)) return undefined;
    rows.push(row);
  }
  return rows;
}
