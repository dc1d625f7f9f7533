import { StarlingError } from "#shared/base/errors.ts";
import { type NewerRow, newerRowText, ROW_SCHEMA, type Row } from "#shared/fleet/rows/row.ts";
import type { Reading } from "#shared/ports.ts";

/**
 * The row, unless a newer version of Starling wrote it: guessing what that means could undo it. Who can go on without it
 * asks for such rows to be kept, as `NewerRow`.
 */
export function readableRow(item: Row | Readonly<Record<string, unknown>>, { newer }: Reading = {}): Row {
  const { pk, sk, schema } = item;
  if (typeof schema === "number" && schema > ROW_SCHEMA) {
    const row: NewerRow = { pk: String(pk), sk: String(sk), type: "Newer", schema, version: 0 };
    if (newer === "kept") return row;
    throw new StarlingError(newerRowText(row), { code: "NewerRow", retry: "permanent", data: { pk, sk, schema } });
  }
  return item as Row;
}
