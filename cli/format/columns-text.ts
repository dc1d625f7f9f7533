import { valuesAt } from "#cli/format/evaluate-template.ts";
import { formatTable } from "#cli/format/table.ts";
import type { ColumnsOutput } from "#cli/output/output.ts";
import { isJsonObject } from "#shared/base/json.ts";

const none = "<none>";

/** @param value - an object, or a list of them, whose items are the rows. */
export function columnsText(value: unknown, { columns, headers }: ColumnsOutput): string {
  const items = isJsonObject(value) && Array.isArray(value.items) ? value.items : [value];
  const rows = items.map((item) => columns.map(({ path }) => cellOf(valuesAt(path, [item]))));
  return formatTable({ columns: columns.map(({ header }) => header), rows }, { headers });
}

function cellOf(values: readonly unknown[]): string {
  return values.length === 0 ? none : values.map((value) => (value === null ? none : shown(value))).join(",");
}

/** The value in Go's format: `[a b]`, `map[k:v]`. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shown).join(" ")}]`;
  if (isJsonObject(value))
    return `map[${Object.entries(value)
      .map(([name, one]) => `${name}:${shown(one)}`)
      .join(" ")}]`;
  return value === null ? "<nil>" : String(value);
}
