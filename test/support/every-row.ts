import { allItems } from "#shared/base/all-pages.ts";
import type { Newer, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { RowQuery, Table } from "#shared/ports.ts";

/** All pages of a query. */
export async function everyRow<Type extends RowType, Kept extends Newer = undefined>(
  table: Table,
  query: RowQuery<Type, Kept>,
): Promise<readonly RowRead<Type, Kept>[]> {
  return Array.fromAsync(allItems((start) => table.query({ ...query, ...start })));
}
