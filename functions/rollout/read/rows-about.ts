import { allItems } from "#shared/base/all-pages.ts";
import { clusterOfKey } from "#shared/fleet/rows/keys.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { RowOf } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

/**
 * Rows about clusters, and the clusters of rows that only a newer version can read: these cost the others nothing.
 * @param range - with a limit: at most that many rows.
 */
export async function rowsAbout<Type extends "Slot" | "Target" | "CatchUp">(
  range: RowRange<Type> & { readonly limit?: number },
  table: Table,
): Promise<{ readonly rows: readonly RowOf<Type>[]; readonly unread: readonly string[] }> {
  const [rows, unread]: [RowOf<Type>[], string[]] = [[], []];
  if (range.limit === 0) return { rows, unread };
  for await (const row of allItems((start) => table.query<Type, "kept">({ ...range, newer: "kept", ...start }))) {
    if (isNewer(row)) unread.push(clusterOfKey(row));
    else rows.push(row);
    if (rows.length === range.limit) break;
  }
  return { rows, unread };
}
