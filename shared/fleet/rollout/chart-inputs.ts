/** The inputs of a chart on a cluster: pure, from the template and the cluster's values. */
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson, isJsonObject } from "#shared/base/json.ts";
import { ownValue } from "#shared/base/own-value.ts";
import { isWholeExpression, renderPath, renderValue, type TemplateCluster } from "#shared/base/path-template.ts";
import { chartProblem, expressionsIn } from "#shared/fleet/kinds/chart-fields.ts";
import { versionLabel } from "#shared/fleet/kinds/cluster-discovery.ts";
import type { BoundInputs, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import type { HelmOptions } from "#shared/source/helm/helm-options.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";

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

const digests = new WeakMap<HelmOptions, string>();

/** Expressions of the template's options: found once for all clusters of a plan. */
export function optionsDigest(options: HelmOptions): string {
  const digest = digests.get(options) ?? digestOf(options);
  digests.set(options, digest);
  return digest;
}
