import { sectionText } from "#cli/format/describe-text.ts";
import { rowsText } from "#cli/format/values-text.ts";
import { plainText } from "#shared/base/plain-text.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import type { TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import { shorten } from "#shared/words/shorten.ts";

const valueWidth = 70;

/**
 * - `assigned`: the cluster was assigned what these come to; `desired`: it was assigned something else, or nothing yet;
 * - `disabled`: an override takes the template away from it; `problem`: it can be given nothing.
 */
export interface TemplateInputs {
  readonly template: string;
  readonly state: "assigned" | "desired" | "disabled" | "problem";
  readonly problem?: string;
  readonly origins: readonly Origin[];
}

/** What a template is given on a cluster, or why nobody can tell. */
export type ShownInputs = readonly TemplateInputs[] | { readonly unknown: string };

/** @param columns - of the terminal; absent: nothing is cut. */
function valueText(text: string, columns: number | undefined): string {
  return columns === undefined ? text : shorten(text, valueWidth);
}

/** As a group's templates are written: their parameters, and what each override sets for whom. */
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

/** One section for each template: field, value, and who said it. */
export function inputsText(
  inputs: ShownInputs,
  { cluster, columns }: { readonly cluster: string; readonly columns?: number | undefined },
): string {
  if ("unknown" in inputs) return sectionText("Inputs", `  not known: ${plainText(inputs.unknown)}\n`);
  return inputs
    .map(({ template, state, problem, origins }) => {
      const said = {
        assigned: "",
        desired: "; not assigned yet",
        disabled: "; disabled there",
        problem: `; ${problem ?? ""}`,
      }[state];
      const rows = origins.map(({ field, value, from }) => [field, valueText(value, columns), from.join(" <- ")]);
      return sectionText(`Inputs of ${template} on ${cluster}${plainText(said)}`, rowsText(rows));
    })
    .join("");
}
