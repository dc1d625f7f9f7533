import { allItems } from "#shared/base/all-pages.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { RowQuery, Table } from "#shared/ports.ts";

/** All pages of a query. */
export async function everyRow(table: Table, query: RowQuery): Promise<readonly Row[]> {
  return Array.fromAsync(allItems((start) => table.query({ ...query, ...start })));
}
