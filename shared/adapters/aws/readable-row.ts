import { unpackedRow } from "#shared/adapters/aws/packed-row.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { rowTypeOf } from "#shared/fleet/rows/keys.ts";
import { type NewerRow, newerRowText, newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { Newer, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";

/**
 * The row, unless a newer version of Starling wrote it, or its type does not fit its key. Guessing its meaning could
 * undo its changes. A caller that can continue without such rows requests them as `NewerRow`. Nothing else is checked,
 * because nobody else writes here and rows can be large.
 */
export function readableRow<Type extends RowType, Kept extends Newer = undefined>(
  item: object,
  { newer }: { readonly newer?: Kept } = {},
): RowRead<Type, Kept> {
  const { pk, sk, schema, type } = item as Readonly<Record<string, unknown>>;
  const key = { pk: String(pk), sk: String(sk) };
  const expected = rowTypeOf(key);
  const isOfNewer = typeof schema === "number" && schema > newestRowSchema;
  const isAsExpected = expected === undefined || (type === expected && typeof schema === "number");
  const unpacked = isAsExpected && !isOfNewer ? unpackedOrNone(item) : undefined;
  if (unpacked !== undefined) return unpacked as RowRead<Type, Kept>;
  const row: NewerRow = { ...key, type: "Newer", schema: Number(schema ?? 0), version: 0 };
  if (newer === "kept") return row as RowRead<Type, Kept>;
  const code = isOfNewer ? "NewerRow" : "UnexpectedRow";
  throw new StarlingError(newerRowText(row), { code, retry: "permanent", data: { pk, sk, schema } });
}

/** A row that was packed under another key, or is damaged, does not prevent reading the others. */
function unpackedOrNone(item: object): object | undefined {
  try {
    return unpackedRow(item);
  } catch {
    return undefined;
  }
}
