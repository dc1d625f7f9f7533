import type { NewerRow, RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { RowOf, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

/**
 * One row, or its known part when only a newer version of Starling can read it. Such a row is reported and not changed.
 */
export async function readRow<Type extends RowType>(
  table: Table,
  key: RowKeyOf<Type>,
): Promise<RowOf<Type> | NewerRow | undefined> {
  const [row] = await table.getMany([key], { newer: "kept" });
  return row;
}
