import type { NewerRow, RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { RowOf, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Table } from "#shared/ports.ts";

/** One row, or what is known of it where only a newer version can read it: then it is told, and left alone. */
export async function readRow<Type extends RowType>(
  table: Table,
  key: RowKeyOf<Type>,
): Promise<RowOf<Type> | NewerRow | undefined> {
  const [row] = await table.getMany([key], { newer: "kept" });
  return row;
}
