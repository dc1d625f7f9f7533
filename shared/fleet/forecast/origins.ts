/** Where what a template comes to on a cluster was said: pure. */
import { referencesIn, renderText } from "#shared/base/path-template.ts";
import { type EffectiveValue, valueOrigins } from "#shared/fleet/effective-values.ts";
import { expressionsIn } from "#shared/fleet/kinds/chart-fields.ts";
import { overridden, overridesFor } from "#shared/fleet/rollout/override.ts";
import type { ClusterValuesRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";

/** One input of a rendering. */
export interface Origin {
  /** As `parameters.DOMAIN`, or a field of the template. */
  readonly field: string;
  readonly value: string;
  /** Who said so, the nearest first: `overrides[0]`, and of its expressions each `clustervalues/eu-west`. */
  readonly from: readonly string[];
}

type Cluster = Pick<FleetRow, "name" | "labels" | "values" | "discoveredValues">;

/**
 * @param cluster - with its own values.
 * @param layers - every ClusterValues, see `inOrder`.
 */
export function originsOf(
  template: PlannedTemplate,
  cluster: Cluster,
  layers: readonly Pick<ClusterValuesRow, "name" | "spec">[],
): readonly Origin[] {
  const values = valueOrigins(cluster, layers, undefined);
  const overrides = overridesFor(template, cluster);
  const special = overridden(template, overrides);
  const effective = Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value]));
  const { parameters = {}, targetNamespace, path, render } = special;
  const seen = { ...cluster, values: effective, params: parameters };
  const saidBy = (has: (part: Partial<PlannedTemplate>) => boolean) => {
    const last = overrides.findLast((index) => has((template.overrides?.[index] ?? {}) as Partial<PlannedTemplate>));
    return last === undefined ? "template" : `overrides[${last}]`;
  };
  const originOf = (field: string, text: string, by: string): Origin => {
    const rendered = renderText(text, seen);
    return {
      field,
      value: rendered.ok ? rendered.text : text,
      from: [by, ...referencesIn(text).map((reference) => referenceOrigin(reference, values))],
    };
  };
  const helm = render?.helm;
  const byRender = saidBy((part) => part.render !== undefined);
  return [
    originOf(
      "path",
      path,
      saidBy((part) => part.path !== undefined),
    ),
    ...(targetNamespace === undefined
      ? []
      : [
          originOf(
            "targetNamespace",
            targetNamespace,
            saidBy((part) => part.targetNamespace !== undefined),
          ),
        ]),
    ...Object.entries(parameters).map(([name, text]) =>
      originOf(
        `parameters.${name}`,
        text,
        saidBy((part) => Object.hasOwn(part.parameters ?? {}, name)),
      ),
    ),
    ...expressionsIn(helm?.values).map((text) => originOf(`render.helm.values ${text}`, text, byRender)),
    ...(helm?.valuesFrom ?? []).map((file, index) => originOf(`render.helm.valuesFrom[${index}]`, file.path, byRender)),
  ];
}

function referenceOrigin(reference: string, values: Readonly<Record<string, EffectiveValue>>): string {
  if (!reference.startsWith("cluster.values.")) return reference;
  const [, , name = ""] = reference.split(".");
  const found = values[name];
  if (found === undefined) return `${reference}: default`;
  const { kind, name: by } = found.from;
  return `${reference}: ${kind.toLowerCase()}${by === "" ? "" : `/${by}`}`;
}
