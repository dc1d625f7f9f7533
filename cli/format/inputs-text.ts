import { sectionText } from "#cli/format/describe-text.ts";
import { rowsText } from "#cli/format/values-text.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import { shorten } from "#shared/words/shorten.ts";

const valueWidth = 70;

/**
 * - `assigned`: the cluster was assigned the rendering of these inputs; `desired`: it has another one, or none yet;
 * - `disabled`: an override disables the template on the cluster; `problem`: the inputs cannot be determined.
 */
export interface TemplateInputs {
  readonly template: string;
  readonly state: "assigned" | "desired" | "disabled" | "problem";
  readonly problem?: string;
  readonly origins: readonly Origin[];
}

/** The inputs of templates on a cluster, or why they are not known. */
export type ShownInputs = readonly TemplateInputs[] | { readonly unknown: string };

/** @param columns - width of the terminal. Absent: nothing is cut. */
function valueText(text: string, columns: number | undefined): string {
  return columns === undefined ? text : shorten(text, valueWidth);
}

/** The parameters of a group's templates, and the fields and clusters of each override. */
export function writtenInputsText(templates: SyncGroupSpec["templates"], columns: number | undefined): string {
  const parameters = templates.flatMap(({ name, parameters: own = {} }) =>
    Object.entries(own).map(([parameter, text]) => [name, parameter, valueText(text, columns)]),
  );
  const overrides = templates.flatMap(({ name, overrides: own = [] }) =>
    own.map((override, index) => [`${name} overrides[${index}]`, selectionText(override.clusters), setBy(override)]),
  );
  return sectionText("Parameters", rowsText(parameters)) + sectionText("Overrides", rowsText(overrides));
}

function setBy({ clusters: _clusters, parameters = {}, apply = {}, ...fields }: TemplateOverride): string {
  return [
    ...Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name])),
    ...Object.keys(parameters).map((name) => `parameters.${name}`),
    ...Object.keys(apply).map((name) => `apply.${name}`),
  ].join(", ");
}

/** One section for each template: field, value, and where the value is set. */
export function inputsText(
  inputs: ShownInputs,
  { cluster, columns }: { readonly cluster: string; readonly columns?: number | undefined },
): string {
  if ("unknown" in inputs) return sectionText("Inputs", `  not known: ${plainLine(inputs.unknown)}\n`);
  return inputs
    .map(({ template, state, problem, origins }) => {
      const said = {
        assigned: "",
        desired: "; not assigned yet",
        disabled: "; disabled on this cluster",
        problem: `; ${problem ?? ""}`,
      }[state];
      const rows = origins.map(({ field, value, from }) => [field, valueText(value, columns), from.join(" <- ")]);
      return sectionText(`Inputs of ${template} on ${cluster}${plainLine(said)}`, rowsText(rows));
    })
    .join("");
}
