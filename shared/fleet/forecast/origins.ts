/** The origin of each input of a template on a cluster: pure. */
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { isWholeExpression, referencesIn, renderText } from "#shared/base/path-template.ts";
import { type EffectiveValue, valueOrigins } from "#shared/fleet/effective-values.ts";
import { lastingLeaves, leafField } from "#shared/fleet/forecast/value-leaves.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { type SpecialisationFields, specialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import { overridden, overridesFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import type { ClusterValuesRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import type { HelmOptions } from "#shared/source/helm/helm-options.ts";

/** One input of a rendering. */
export interface Origin {
  /** `parameters.DOMAIN`, or a field of the template. */
  readonly field: string;
  readonly value: string;
  /** The places that set it, the nearest first: `overrides[0]`, then `clustervalues/eu-west` for each of its expressions. */
  readonly from: readonly string[];
}

type Cluster = Pick<FleetRow, "name" | "labels" | "values" | "discoveredValues">;

/** Content of a `valuesFrom` file by its position; a file that was not read is left out. */
export type ValuesFiles = ReadonlyMap<number, unknown>;

export interface OriginFacts {
  /** The cluster, with its own values. */
  readonly cluster: Cluster;
  /** Every ClusterValues, see `inOrder`. */
  readonly layers: readonly Pick<ClusterValuesRow, "name" | "spec">[];
  readonly files?: ValuesFiles;
}

/** The other inputs of a template's rendering. */
const otherFields = Object.keys(specialisationFields).filter(
  (name) => name !== "parameters" && name !== "targetNamespace",
) as readonly (keyof SpecialisationFields)[];

export function originsOf(template: PlannedTemplate, { cluster, layers, files }: OriginFacts): readonly Origin[] {
  const values = valueOrigins(cluster, layers, undefined);
  return originsIn(template, { cluster, values, ...defined({ files }) });
}

/** @param facts.values - the cluster's effective values, each with its origin. */
export function originsIn(
  template: PlannedTemplate,
  {
    cluster,
    values,
    files,
  }: {
    readonly cluster: SelectableCluster;
    readonly values: Readonly<Record<string, EffectiveValue>>;
    readonly files?: ValuesFiles;
  },
): readonly Origin[] {
  const overrides = overridesFor(template, cluster);
  const special = overridden(template, overrides);
  const effective = Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value]));
  const { parameters = {}, targetNamespace, path, render } = special;
  const seen = { ...cluster, values: effective, params: parameters };
  const saidBy = (has: (part: Partial<PlannedTemplate>) => boolean) => {
    const last = overrides.findLast((index) => has((template.overrides?.[index] ?? {}) as Partial<PlannedTemplate>));
    return last === undefined ? "template" : `overrides[${last}]`;
  };
  const originOf = (field: string, text: string, by: readonly string[]): Origin => {
    const rendered = renderText(text, seen);
    const asked = referencesIn(text).map((reference) => referenceOrigin(reference, values));
    return { field, value: rendered.ok ? rendered.text : text, from: [...by, ...asked] };
  };
  const plainly = (field: string, value: unknown, by: readonly string[]): Origin => ({
    field,
    value: typeof value === "string" ? value : canonicalJson(value),
    from: by,
  });
  const whole = (field: keyof PlannedTemplate) => saidBy((part) => part[field] !== undefined);
  return [
    originOf("path", path, [whole("path")]),
    ...(targetNamespace === undefined
      ? []
      : [originOf("targetNamespace", targetNamespace, [whole("targetNamespace")])]),
    ...Object.entries(parameters).map(([name, text]) =>
      originOf(`parameters.${name}`, text, [saidBy((part) => Object.hasOwn(part.parameters ?? {}, name))]),
    ),
    ...otherFields.flatMap((field) =>
      special[field] === undefined ? [] : [plainly(field, special[field], [whole(field)])],
    ),
    ...chartOrigins(render?.helm, files ?? new Map(), { by: whole("render"), originOf, plainly }),
  ];
}

interface Saying {
  readonly by: string;
  originOf(field: string, text: string, by: readonly string[]): Origin;
  plainly(field: string, value: unknown, by: readonly string[]): Origin;
}

/** Each file, and each value of the files and of the template that no later one replaces. */
function chartOrigins(
  helm: HelmOptions | undefined,
  files: ValuesFiles,
  { by, originOf, plainly }: Saying,
): readonly Origin[] {
  const { values = {}, valuesFrom = [] } = helm ?? {};
  const named = valuesFrom.map(({ path, source }, index) => {
    const origin = originOf(`render.helm.valuesFrom[${index}]`, path, [by]);
    return source === undefined ? origin : { ...origin, value: `${origin.value} of source/${source}` };
  });
  const leaves = lastingLeaves([...valuesFrom.map((_file, index) => files.get(index) ?? {}), values]);
  return [
    ...named,
    ...leaves.flatMap((own, index) =>
      own.map((leaf) => {
        const { value } = leaf;
        const file = named[index];
        if (file !== undefined) return plainly(leafField(leaf), value, [by, `valuesFrom[${index}]: ${file.value}`]);
        const isAsked = typeof value === "string" && isWholeExpression(value);
        return isAsked ? originOf(leafField(leaf), value, [by]) : plainly(leafField(leaf), value, [by]);
      }),
    ),
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
