/**
 * `{{ cluster.name }}`, `{{ cluster.labels.KEY }}` and `{{ cluster.values.KEY }}` in a template's path, each with an
 * optional `| default(text)`. A closed list of names and no code: a path can choose a folder and nothing else.
 */
import { ownValue } from "#shared/domain/own-value.ts";

export interface TemplateCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, string>>;
}

export type RenderedPath =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly message: string };

const expression = /\{\{(.*?)\}\}/g;
const reference =
  /^\s*cluster\.(?:(name)|labels\.([A-Za-z0-9][-A-Za-z0-9_./]*)|values\.([A-Za-z_][A-Za-z0-9_]*))\s*(?:\|\s*default\(([^(){}|]*)\)\s*)?$/;
/** What may stand in the resulting path: anything but an escape from the artifact. */
const escapes = /(^|\/)\.\.(\/|$)|^\/|\0/;

/** @returns what is wrong with the text, or undefined. */
export function checkPathTemplate(text: string): string | undefined {
  for (const match of text.matchAll(expression)) {
    if (!reference.test(match[1] ?? "")) {
      return `"${match[0]}" is not an expression Starling knows; use {{ cluster.name }}, {{ cluster.labels.KEY }} or {{ cluster.values.KEY }}, with an optional | default(text)`;
    }
  }
  const rest = text.replaceAll(expression, "");
  if (rest.includes("{{") || rest.includes("}}")) return "has {{ without }} or }} without {{";
  return undefined;
}

/** The path for one cluster; a missing key names the key and the cluster. */
export function renderPath(text: string, cluster: TemplateCluster): RenderedPath {
  const problem = checkPathTemplate(text);
  if (problem !== undefined) return { ok: false, message: `path: ${problem}` };
  const missing: string[] = [];
  const path = text.replaceAll(expression, (_whole, inner: string) => {
    const [, isName, label, value, fallback] = reference.exec(inner) ?? [];
    const found =
      isName !== undefined
        ? cluster.name
        : label !== undefined
          ? ownValue(cluster.labels, label)
          : ownValue(cluster.values, value ?? "");
    if (found === undefined && fallback === undefined) missing.push(inner.trim());
    return found ?? fallback ?? "";
  });
  if (missing.length > 0) {
    return { ok: false, message: `path: cluster ${cluster.name} has no ${missing.join(", ")}; set it on the Cluster` };
  }
  if (path === "" || escapes.test(path)) {
    return { ok: false, message: `path: "${path}" for cluster ${cluster.name} leaves the artifact` };
  }
  return { ok: true, path };
}
