/** What a template's fields come to on a cluster: pure, from the template and what was bound of the cluster. */
import { renderText, type TemplateCluster } from "#shared/base/path-template.ts";
import type { BoundInputs, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

type Specialised = Pick<PlannedTemplate, "parameters" | "substitute">;

/** Nothing is bound of what is not used: it makes no other rendering, and lacks nothing. */
export function bindParameters(
  { parameters = {}, substitute }: Specialised,
  cluster: TemplateCluster,
): { readonly parameters?: NonNullable<BoundInputs["parameters"]> } | { readonly problem: string } {
  if (substitute !== true) return {};
  const bound: Record<string, string> = {};
  for (const [name, text] of Object.entries(parameters)) {
    if (!text.includes("{{")) continue;
    const rendered = renderText(text, cluster);
    if (!rendered.ok) return { problem: `parameters.${name}: ${rendered.message}` };
    bound[name] = rendered.text;
  }
  return Object.keys(bound).length === 0 ? {} : { parameters: bound };
}

/** As a rendering has it: everything written out. Undefined where the objects stay as they are. */
export function specialisationOf(
  { parameters, substitute }: Specialised,
  bound: BoundInputs = {},
): Specialisation | undefined {
  return substitute === true ? { variables: { ...parameters, ...bound.parameters } } : undefined;
}
