/** A template with its overrides for a cluster, in order: pure. */
import { defined } from "#shared/base/defined.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import type { PlannedOverride, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";

/** Indexes of the template's overrides that select the cluster. */
export function overridesFor({ overrides = [] }: PlannedTemplate, cluster: SelectableCluster): readonly number[] {
  return overrides.flatMap(({ clusters }, index) => (selects(clusters, cluster) ? [index] : []));
}

/** Whether the cluster does not get the template, by the last of its overrides. */
export function isDisabledFor(
  { overrides = [] }: { readonly overrides?: readonly Pick<TemplateOverride, "clusters" | "disabled">[] | undefined },
  cluster: SelectableCluster,
): boolean {
  const own = overrides.filter(({ clusters, disabled }) => disabled !== undefined && selects(clusters, cluster));
  return own.at(-1)?.disabled === true;
}

const made = new WeakMap<PlannedTemplate, Map<string, PlannedTemplate>>();

/**
 * The template with these overrides, each applied over the ones before: parameters and the members of `apply` one by
 * one, any other field as a whole. Equal overrides give the same object, because a fleet has few sets of them.
 */
export function overridden(template: PlannedTemplate, overrides: readonly number[] = []): PlannedTemplate {
  if (overrides.length === 0) return template;
  const known = made.get(template) ?? new Map<string, PlannedTemplate>();
  made.set(template, known);
  const key = overrides.join();
  const before = known.get(key);
  if (before !== undefined) return before;
  let result = template;
  for (const index of overrides) {
    const override = template.overrides?.[index];
    if (override !== undefined) result = over(result, override);
  }
  known.set(key, result);
  return result;
}

function over(template: PlannedTemplate, override: PlannedOverride): PlannedTemplate {
  const { clusters: _clusters, parameters, apply, render, ...fields } = override;
  const { render: before, ...rest } = template;
  const way = render === undefined ? before : render === "detect" ? undefined : render;
  return {
    ...rest,
    ...defined(fields),
    apply: { ...template.apply, ...defined(apply ?? {}) },
    ...(way === undefined ? {} : { render: way }),
    ...(parameters === undefined ? {} : { parameters: { ...template.parameters, ...parameters } }),
  };
}
