import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, sectionText } from "#cli/format/describe-text.ts";
import { rowsText } from "#cli/format/values-text.ts";
import type { ClusterValuesObject } from "#shared/fleet/api/objects.ts";
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
