import { type NewerRow, ROW_SCHEMA, type Row } from "#shared/domain/rows/row.ts";
import { StarlingError } from "#shared/errors.ts";
import type { Reading } from "#shared/ports.ts";

/**
 * The row, unless a newer version of Starling wrote it: guessing what that means could undo it. Who can go on without it
 * asks for such rows to be kept, as `NewerRow`.
 */
export function readableRow(item: Row | Readonly<Record<string, unknown>>, { newer }: Reading = {}): Row {
  const { pk, sk, schema } = item;
  if (typeof schema === "number" && schema > ROW_SCHEMA) {
    if (newer === "kept")
      return { pk: String(pk), sk: String(sk), type: "Newer", schema, version: 0 } satisfies NewerRow;
    throw new StarlingError(
      `row ${pk}/${sk} has schema ${schema}, this version knows up to ${ROW_SCHEMA}: update the stack to the version that wrote it`,
      { code: "NewerRow", retry: "permanent", data: { pk, sk, schema } },
    );
  }
  return item as Row;
}
