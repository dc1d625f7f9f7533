import { formatTable } from "#cli/format/table.ts";
import type { EffectiveValue } from "#shared/fleet/effective-values.ts";
import { valueText } from "#shared/fleet/kinds/values.ts";

/** The effective values of a cluster, and the object that sets each. */
export function clusterValuesText(values: Readonly<Record<string, EffectiveValue>> = {}): string {
  return rowsText(
    Object.entries(values).map(([name, { value, from }]) => [
      name,
      valueText(value),
      `${from.kind.toLowerCase()}/${from.name}`,
    ]),
  );
}

/** Rows without headers. */
export function rowsText(rows: readonly (readonly string[])[]): string {
  const [first] = rows;
  if (first === undefined) return "";
  return formatTable({ columns: first.map(() => ""), rows }, { headers: "hide", indent: "  " });
}
