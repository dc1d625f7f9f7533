import { isJsonObject } from "#shared/base/json.ts";
import { isWholeExpression } from "#shared/base/path-template.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { maxReleaseName } from "#shared/source/helm/helm-options.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";

interface ChartFields {
  readonly name: string;
  readonly apply: ApplyOptions;
  readonly render?: RenderOptions | undefined;
}

/** Why a template's chart cannot be rendered for any cluster; undefined when it can. */
export function chartProblem({
  name,
  apply,
  render,
}: ChartFields): { readonly field: string; readonly message: string } | undefined {
  if (render?.helm === undefined) return undefined;
  if (apply.defaultNamespace === undefined) {
    const message = "is required for a Helm chart: the namespace of its release, as with helm install --namespace";
    return { field: "apply.defaultNamespace", message };
  }
  if (render.helm.releaseName === undefined && name.length > maxReleaseName) {
    const message = `is required: the name "${name}" is longer than the ${maxReleaseName} characters that Helm allows`;
    return { field: "render.helm.releaseName", message };
  }
  return undefined;
}

/** Texts that consist of one expression, at any depth; other texts belong to the chart, also `{{ $labels.pod }}`. */
export function expressionsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return isWholeExpression(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap(expressionsIn);
  return isJsonObject(value) ? Object.values(value).flatMap(expressionsIn) : [];
}
