/**
 * `{{ cluster.name }}`, `{{ cluster.labels.KEY }}` and `{{ cluster.values.KEY }}` in a template's path, each with an
 * optional `| default(text)`; `cluster.values.KEY.KEY` looks into a map. A closed list of names and no code: a path can choose a folder and nothing else.
 */
import { excerpt } from "#shared/base/excerpt.ts";
import { ownValue } from "#shared/base/own-value.ts";

export interface TemplateCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** As JSON has them. */
  readonly values: Readonly<Record<string, unknown>>;
}

export type RenderedPath =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly message: string };

const reference =
  /^ *cluster\.(?:(name)|labels\.([A-Za-z0-9][-A-Za-z0-9_./]*)|values\.([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)) *(?:\| *default\(([^(){}|]*)\) *)?$/;
/** What may stand in the resulting path: anything but an escape from the artifact. */
const escapes = /(^|\/)\.\.(\/|$)|^\/|\0/;
/** As long as a path that is written out. A planner holds one for each template and cluster. */
const maxPath = 1024;

/** @returns what is wrong with the text, or undefined. */
export function checkPathTemplate(text: string): string | undefined {
  const pieces = piecesOf(text);
  for (const { expression } of pieces) {
    if (expression === undefined || reference.test(expression)) continue;
    return `"${excerpt(`{{${expression}}}`)}" is not an expression Starling knows; use {{ cluster.name }}, {{ cluster.labels.KEY }} or {{ cluster.values.KEY }}, with an optional | default(text)`;
  }
  const rest = pieces.map((piece) => piece.literal).join("");
  if (rest.includes("{{") || rest.includes("}}")) return "has {{ without }} or }} without {{";
  return undefined;
}

interface Piece {
  readonly literal: string;
  /** What stands between the braces behind the literal; absent at the end. */
  readonly expression?: string;
}

/** One pass: an expression that looks for `}}` from every `{{` takes the square of the text's length. */
function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf("{{", from);
    const close = open < 0 ? -1 : text.indexOf("}}", open + 2);
    if (close < 0) return [...pieces, { literal: text.slice(from) }];
    pieces.push({ literal: text.slice(from, open), expression: text.slice(open + 2, close) });
    from = close + 2;
  }
}

/** One expression about a cluster, and nothing around it: `{{ cluster.values.domain }}`. */
export function isClusterExpression(text: string): boolean {
  return /^\{\{ *cluster\.[^{}]*\}\}$/.test(text);
}

export type RenderedText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string };

/** The text for one cluster; a missing key names the key and the cluster. */
export function renderText(text: string, cluster: TemplateCluster): RenderedText {
  const problem = checkPathTemplate(text);
  if (problem !== undefined) return { ok: false, message: problem };
  const missing: string[] = [];
  const unfit: string[] = [];
  let result = "";
  for (const { literal, expression } of piecesOf(text)) {
    result += literal;
    if (expression === undefined) continue;
    const [, isName, label, value, fallback] = reference.exec(expression) ?? [];
    const found =
      isName !== undefined
        ? cluster.name
        : label !== undefined
          ? ownValue(cluster.labels, label)
          : valueAt(cluster.values, (value ?? "").split("."));
    if (found === undefined && fallback === undefined) missing.push(expression.trim());
    if (typeof found === "object") unfit.push(expression.trim());
    else result += found ?? fallback ?? "";
  }
  if (missing.length > 0) {
    return { ok: false, message: `cluster ${cluster.name} has no ${missing.join(", ")}; ${remedyOf(missing)}` };
  }
  if (unfit.length > 0) {
    const message = `${unfit.join(", ")} of cluster ${cluster.name} is a list or a map; name one text, number, true or false in it`;
    return { ok: false, message };
  }
  return { ok: true, text: result };
}

/** `renderText` for a path inside the artifact, which it may not leave. */
export function renderPath(text: string, cluster: TemplateCluster): RenderedPath {
  const rendered = renderText(text, cluster);
  if (!rendered.ok) return { ok: false, message: `path: ${rendered.message}` };
  const path = rendered.text;
  if (path.length > maxPath) {
    const message = `path: has ${path.length} characters for cluster ${cluster.name}; expected at most ${maxPath}: shorten it, or the values that it is made of`;
    return { ok: false, message };
  }
  if (path === "" || escapes.test(path)) {
    return { ok: false, message: `path: "${excerpt(path)}" for cluster ${cluster.name} leaves the artifact` };
  }
  return { ok: true, path };
}

/** A text, number, truth value, or an object that is none of them. */
function valueAt(values: unknown, [name, ...rest]: readonly string[]): string | object | undefined {
  if (name === undefined) return typeof values === "object" && values !== null ? values : String(values);
  if (typeof values !== "object" || values === null || Array.isArray(values)) return undefined;
  const found = ownValue(values as Readonly<Record<string, unknown>>, name);
  return found === undefined ? undefined : valueAt(found, rest);
}

/** Where it can be set. */
function remedyOf(missing: readonly string[]): string {
  if (!missing.some((expression) => expression.startsWith("cluster.values."))) return "set it on the Cluster";
  return "set it on the Cluster; a value may also come from a ClusterValues that selects it, or from a tag (spec.values.fromTags of its ClusterDiscovery)";
}
