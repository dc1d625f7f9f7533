/**
 * A template on one cluster: its overrides there, the inputs of its chart, its fields, and the input of its
 * build. Pure, from the template and the cluster's values.
 */

import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { canonicalJson, isJsonObject } from "#shared/base/json.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { ownValue } from "#shared/base/own-value.ts";
import {
  isWholeExpression,
  renderPath,
  renderText,
  renderValue,
  type TemplateCluster,
} from "#shared/base/path-template.ts";
import { chartProblem, expressionsIn } from "#shared/fleet/kinds/chart-fields.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { versionLabel } from "#shared/fleet/kinds/own-labels.ts";
import type { SpecialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import type { TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import type { BoundInputs, PlannedOverride, PlannedTemplate, RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Edits } from "#shared/source/edits.ts";
import type { HelmOptions } from "#shared/source/helm/helm-options.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

type ChartTemplate = Pick<PlannedTemplate, "name" | "apply" | "render" | "besides">;

/** The options that depend on the cluster; undefined when none does. */
export function boundInputs(
  template: ChartTemplate,
  cluster: TemplateCluster,
): { readonly bound?: BoundInputs } | { readonly problem: string } {
  const options = template.render?.helm;
  if (options === undefined) return {};
  const problem = chartProblem(template);
  if (problem !== undefined) return { problem: `${problem.field}: ${problem.message}` };
  const texts: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [index, { path }] of (options.valuesFrom ?? []).entries()) {
    if (!path.includes("{{")) continue;
    const rendered = renderPath(path, cluster);
    if (rendered.ok) texts[path] = rendered.path;
    else problems.push(`render.helm.valuesFrom[${index}].${rendered.message}`);
  }
  for (const text of expressionsIn(options.values)) {
    const rendered = renderValue(text, cluster);
    if (rendered.ok && typeof rendered.value === "string") texts[text] = rendered.value;
    else if (rendered.ok) values[text] = rendered.value;
    else problems.push(`render.helm.values: ${rendered.message}`);
  }
  const [first] = problems;
  if (first !== undefined) return { problem: first };
  const kubeVersion = options.kubeVersion === undefined ? versionOf(cluster) : undefined;
  const bound = defined({ kubeVersion, texts: someOf(texts), values: someOf(values) });
  return Object.keys(bound).length === 0 ? {} : { bound };
}

function someOf<Value>(map: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> | undefined {
  return Object.keys(map).length === 0 ? undefined : map;
}

/** The cluster's minor version, discovered or stated. */
function versionOf({ labels }: TemplateCluster): string | undefined {
  const label = labels[versionLabel];
  return label !== undefined && /^\d+\.\d+$/.test(label) ? label : undefined;
}

/** The options as a rendering has them, with all defaults. */
export function buildOptionsOf(template: ChartTemplate, bound: BoundInputs = {}): BuildOptions | undefined {
  const { render, name, apply } = template;
  if (render?.helm === undefined) return render === undefined ? undefined : defined({ ...render, helm: undefined });
  const { releaseName = name, values, valuesFrom, crds, lookup, hooks, apiVersions } = render.helm;
  const { texts = {} } = bound;
  const inPlace = { ...texts, ...bound.values };
  const release: HelmRelease = {
    releaseName,
    namespace: apply.defaultNamespace ?? "",
    crds,
    lookup,
    hooks,
    ...defined({
      kubeVersion: render.helm.kubeVersion ?? bound.kubeVersion,
      apiVersions,
      values: values === undefined ? undefined : canonicalJson(withValues(values, inPlace)),
      valuesFrom: valuesFrom?.map(({ source, path, optional }) => ({
        path: ownValue(texts, path) ?? path,
        optional,
        ...defined({ from: pinIn(template, source) }),
      })),
    }),
  };
  return { helm: release };
}

function pinIn({ besides = [] }: ChartTemplate, source: string | undefined) {
  const pin = besides.find((one) => one.source === source);
  return pin && { source: pin.source, artifactDigest: pin.artifactDigest };
}

function withValues(value: unknown, bound: Readonly<Record<string, unknown>>): unknown {
  if (typeof value === "string") return isWholeExpression(value) ? (ownValue(bound, value) ?? value) : value;
  if (Array.isArray(value)) return value.map((item) => withValues(item, bound));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withValues(member, bound)]));
}

const digests = new WeakMap<HelmOptions | Edits, string>();

/** The digest of a part of a template: computed once for all clusters of a plan. */
export function digestOnce(part: HelmOptions | Edits): string {
  const digest = digests.get(part) ?? digestOf(part);
  digests.set(part, digest);
  return digest;
}

export type BuildInput = Pick<RenderingRow, "artifactDigest" | "path" | "render" | "specialise">;

/** @param input - input of the template on a cluster. */
export function buildOf(
  template: PlannedTemplate,
  {
    path,
    overrides,
    bound,
  }: { readonly path: string; readonly overrides?: readonly number[]; readonly bound?: BoundInputs },
): BuildInput {
  const special = overridden(template, overrides);
  const render = buildOptionsOf(special, bound);
  const specialise = specialisationOf(special, bound);
  return { artifactDigest: special.artifactDigest, path, ...defined({ render, specialise }) };
}

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

/** Exactly these fields of a larger object. */
export function specialisationFieldsOf(template: SpecialisationFields): SpecialisationFields {
  const { parameters, substitute, targetNamespace } = template;
  return defined({ parameters, substitute, targetNamespace, ...pickEdits(template) });
}

function pickEdits(template: SpecialisationFields): Edits {
  const { components, patches, namePrefix, nameSuffix, images, commonMetadata, createNamespace } = template;
  return defined({ components, patches, namePrefix, nameSuffix, images, commonMetadata, createNamespace });
}

/** Unused fields have no values: they make no other rendering, and lack nothing. */
export function bindFields(
  { parameters = {}, substitute = false, targetNamespace }: SpecialisationFields,
  cluster: TemplateCluster,
): Pick<BoundInputs, "parameters" | "namespace"> | { readonly problem: string } {
  const bound: [string, string][] = [];
  for (const [name, text] of substitute === false ? [] : Object.entries(parameters)) {
    if (!text.includes("{{")) continue;
    const rendered = renderText(text, { ...cluster, params: {} });
    if (!rendered.ok) return { problem: `parameters.${name}: ${rendered.message}` };
    bound.push([name, rendered.text]);
  }
  const used = bound.length === 0 ? {} : { parameters: Object.fromEntries(bound) };
  if (targetNamespace?.includes("{{") !== true) return used;
  const namespace = renderText(targetNamespace, cluster);
  if (!namespace.ok) return { problem: `targetNamespace: ${namespace.message}` };
  if (!nameSchema.safeParse(namespace.text).success) {
    const problem = `targetNamespace is not a valid name for cluster ${cluster.name}: "${excerpt(namespace.text)}"; use 1 to 63 characters of a-z, 0-9 and -`;
    return { problem };
  }
  return { ...used, namespace: namespace.text };
}

/** The fields as a rendering has them, with all defaults. Undefined when the objects stay as they are. */
export function specialisationOf(template: SpecialisationFields, bound: BoundInputs = {}): Specialisation | undefined {
  const { parameters, substitute = false, targetNamespace } = template;
  const specialise = defined({
    edits: editsOf(template),
    namespace: bound.namespace ?? targetNamespace,
    variables: substitute === false ? undefined : { ...parameters, ...bound.parameters },
    mode: typeof substitute === "object" ? substitute.mode : undefined,
  });
  return Object.keys(specialise).length === 0 ? undefined : specialise;
}

const editsMade = new WeakMap<SpecialisationFields, Edits>();

/** The same object for the same template: its digest is computed once for all clusters. */
function editsOf(template: SpecialisationFields): Edits | undefined {
  const edits = editsMade.get(template) ?? pickEdits(template);
  editsMade.set(template, edits);
  return Object.keys(edits).length === 0 ? undefined : edits;
}
