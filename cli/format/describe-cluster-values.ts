import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, sectionText } from "#cli/format/describe-text.ts";
import { formatTable } from "#cli/format/table.ts";
import type { ClusterValuesObject } from "#shared/fleet/api/objects.ts";
import type { EffectiveValue } from "#shared/fleet/effective-values.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { valueText } from "#shared/fleet/kinds/values.ts";

export function describeClusterValues(object: ClusterValuesObject, now: Date): string {
  const { spec, status } = object;
  const rows = Object.entries(spec.values).map(([name, value]) => [name, valueText(value)]);
  return [
    headText(object, now),
    fieldsText([
      ["Clusters", `${selectionText(spec.clusters)} (${status.clusters ?? 0} registered)`],
      ["Priority", String(spec.priority)],
    ]),
    sectionText("Values", rowsText(rows)),
  ].join("");
}

/** The values that count for a cluster, and who set each. */
export function clusterValuesText(values: Readonly<Record<string, EffectiveValue>> = {}): string {
  return rowsText(
    Object.entries(values).map(([name, { value, from }]) => [
      name,
      valueText(value),
      `${from.kind.toLowerCase()}/${from.name}`,
    ]),
  );
}

function rowsText(rows: readonly (readonly string[])[]): string {
  const [first] = rows;
  if (first === undefined) return "";
  return formatTable({ columns: first.map(() => ""), rows }, { headers: "hide", indent: "  " });
}
