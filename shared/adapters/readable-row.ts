import { ROW_SCHEMA, type Row } from "#shared/domain/rows/row.ts";
import { StarlingError } from "#shared/errors.ts";

/** The row, unless a newer version of Starling wrote it: guessing what that means could undo it. */
export function readableRow(item: Row | Readonly<Record<string, unknown>>): Row {
  const { pk, sk, schema } = item;
  if (typeof schema === "number" && schema > ROW_SCHEMA) {
    throw new StarlingError(
      `row ${pk}/${sk} has schema ${schema}, this version knows up to ${ROW_SCHEMA}: deploy the newer version`,
      { code: "NewerRow", retry: "permanent", data: { pk, sk, schema } },
    );
  }
  return item as Row;
}
