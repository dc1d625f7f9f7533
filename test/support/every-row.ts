import type { Row } from "#shared/fleet/rows/row.ts";
import type { RowQuery, Table } from "#shared/ports.ts";

/** All pages of a query. */
export async function everyRow(table: Table, query: RowQuery): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let after: string | undefined;
  do {
    const page = await table.query({ ...query, ...(after === undefined ? {} : { after }) });
    rows.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return rows;
}
