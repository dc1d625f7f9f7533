/**
 * `{{ cluster.name }}`, `{{ cluster.labels.KEY }}`, `{{ cluster.values.KEY }}` and `{{ params.NAME }}` in a template's
 * path, each with an optional `| default(text)`; `cluster.values.KEY.KEY` reads a map. The list of names is closed and
 * there is no code, so that a path can only choose a folder. The tags of a cluster fill the names of folders; with `|
 * path`, a value may name several folders.
 */
import { excerpt } from "#shared/base/excerpt.ts";
import { ownValue } from "#shared/base/own-value.ts";

export interface TemplateCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Values as JSON. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The template's parameters, unexpanded. */
  readonly params?: Readonly<Record<string, string>>;
}

export type RenderedPath =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly message: string };

const reference =
  /^ *(?:cluster\.(?:(name)|labels\.([A-Za-z0-9][-A-Za-z0-9_./]*)|values\.([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*))|params\.([A-Za-z_][A-Za-z0-9_]*)) *(?:\| *default\(([^(){}|]*)\) *)?(?:\| *(path) *)?$/;
/** The parts that would lead a path out of the artifact. */
const escapes = /(^|\/)\.\.(\/|$)|^\/|\0/;
/** The limit of an expanded path. A planner holds one for each template and cluster. */
const maxPath = 1024;

/** @returns what is wrong with the text, or undefined. */
export function checkPathTemplate(text: string, use: "path" | "text" = "path"): string | undefined {
  const pieces = piecesOf(text);
  for (const { expression } of pieces) {
    if (expression === undefined) continue;
    const [isKnown, , , , , , isPath] = reference.exec(expression) ?? [];
    if (isPath !== undefined && use === "text")
      return `"| path" has no effect here, because only a path may use it; remove it`;
    if (isKnown !== undefined) continue;
    return `"${excerpt(`{{${expression}}}`)}" is not an expression that Starling knows; use {{ cluster.name }}, {{ cluster.labels.KEY }}, {{ cluster.values.KEY }} or {{ params.NAME }}, with an optional | default(text)`;
  }
  const rest = pieces.map((piece) => piece.literal).join("");
  if (rest.includes("{{") || rest.includes("}}")) return "has {{ without }} or }} without {{";
  return undefined;
}

interface Piece {
  readonly literal: string;
  /** The text between the braces after the literal; absent at the end. */
  readonly expression?: string;
}

/** A single pass. Searching for `}}` from every `{{` would take quadratic time. */
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

/** The references in a text, in order, such as `cluster.values.domain`. */
export function referencesIn(text: string): readonly string[] {
  return piecesOf(text).flatMap(({ expression }) => {
    const [, isName, label, value, parameter] = reference.exec(expression ?? "") ?? [];
    if (isName !== undefined) return ["cluster.name"];
    if (label !== undefined) return [`cluster.labels.${label}`];
    if (value !== undefined) return [`cluster.values.${value}`];
    return parameter === undefined ? [] : [`params.${parameter}`];
  });
}

/** Whether the text is exactly one expression: `{{ cluster.values.domain }}`. */
export function isWholeExpression(text: string): boolean {
  return /^\{\{ *(?:cluster|params)\.[^{}]*\}\}$/.test(text);
}

/** Whether the text has an expression about a parameter. */
export function refersToParameters(text: string): boolean {
  return /\{\{ *params\./.test(text);
}

export type RenderedText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string };

export type RenderedValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** The text for one cluster. The error for a missing key names the key, the cluster, and where to set the key. */
export function renderText(text: string, cluster: TemplateCluster): RenderedText {
  const filled = fill(text, cluster, "text");
  return filled.ok ? { ok: true, text: filled.text } : filled;
}

/** An expanded expression. */
interface Filled {
  readonly expression: string;
  readonly value: string;
  readonly at: number;
  /** Whether the value comes from the template itself, through a default or a parameter. */
  readonly isOfTemplate: boolean;
  readonly allowsPath: boolean;
}

type FilledText =
  | { readonly ok: true; readonly text: string; readonly filled: readonly Filled[] }
  | { readonly ok: false; readonly message: string };

function fill(text: string, cluster: TemplateCluster, use: "path" | "text"): FilledText {
  const problem = checkPathTemplate(text, use);
  if (problem !== undefined) return { ok: false, message: problem };
  const missing: string[] = [];
  const unfit: string[] = [];
  const filled: Filled[] = [];
  let result = "";
  for (const { literal, expression } of piecesOf(text)) {
    result += literal;
    if (expression === undefined) continue;
    const found = foundFor(expression, cluster);
    if (!found.ok) return found;
    if (found.value === undefined) missing.push(expression.trim());
    else if (typeof found.value === "object") unfit.push(expression.trim());
    else {
      const { isOfTemplate, allowsPath } = found;
      const value = String(found.value);
      filled.push({ expression: expression.trim(), value, at: result.length, isOfTemplate, allowsPath });
      result += value;
    }
  }
  if (missing.length > 0) return { ok: false, message: missingMessage(missing, cluster) };
  if (unfit.length > 0) {
    const message = `${unfit.join(", ")} of cluster ${cluster.name} is a list or a map; name a string, a number or a boolean inside it`;
    return { ok: false, message };
  }
  return { ok: true, text: result, filled };
}

/** The value of a single expression. It keeps the cluster's type: a number stays a number, and a list stays a list. */
export function renderValue(text: string, cluster: TemplateCluster): RenderedValue {
  const problem = checkPathTemplate(text, "text");
  if (problem !== undefined) return { ok: false, message: problem };
  const [{ expression = "" } = {}] = piecesOf(text);
  const found = foundFor(expression, cluster);
  if (found.ok && found.value === undefined)
    return { ok: false, message: missingMessage([expression.trim()], cluster) };
  return found.ok ? { ok: true, value: found.value } : found;
}

type FoundValue =
  | ({ readonly ok: true; readonly value: unknown } & Pick<Filled, "isOfTemplate" | "allowsPath">)
  | { readonly ok: false; readonly message: string };

/** `undefined` for a missing key without a default. */
function foundFor(expression: string, cluster: TemplateCluster): FoundValue {
  const [, isName, label, value, parameter, fallback, isPath] = reference.exec(expression) ?? [];
  const allowsPath = isPath !== undefined;
  const ofCluster = (found: unknown): FoundValue => {
    return { ok: true, value: found ?? fallback, isOfTemplate: found === undefined, allowsPath };
  };
  if (isName !== undefined) return ofCluster(cluster.name);
  if (label !== undefined) return ofCluster(ownValue(cluster.labels, label));
  if (value !== undefined) return ofCluster(valueAt(cluster.values, value.split(".")));
  const text = ownValue(cluster.params ?? {}, parameter ?? "");
  if (text === undefined) return ofCluster(undefined);
  const rendered = fill(text, { ...cluster, params: {} }, "text");
  if (!rendered.ok) return { ok: false, message: `parameters.${parameter}: ${rendered.message}` };
  const isOfTemplate = rendered.filled.every((each) => each.isOfTemplate || !each.value.includes("/"));
  return { ok: true, value: rendered.text, isOfTemplate, allowsPath };
}

/** `renderText` for a path, which must not lead out of the artifact. */
export function renderPath(text: string, cluster: TemplateCluster): RenderedPath {
  const rendered = fill(text, cluster, "path");
  if (!rendered.ok) return { ok: false, message: `path: ${rendered.message}` };
  const path = rendered.text;
  if (path.length > maxPath) {
    const message = `path: has ${path.length} characters for cluster ${cluster.name}; expected at most ${maxPath}: shorten the path or its values`;
    return { ok: false, message };
  }
  if (path === "" || escapes.test(path)) {
    return {
      ok: false,
      message: `path: "${excerpt(path)}" for cluster ${cluster.name} leads out of the artifact; correct its values`,
    };
  }
  const misfit = misfitIn(path, rendered.filled);
  if (misfit !== undefined) return { ok: false, message: `path: ${misfit(cluster.name)}` };
  return { ok: true, path };
}

/** A value that would choose the parent folder with all its siblings, or a folder that the template does not expect. */
function misfitIn(path: string, filled: readonly Filled[]): ((cluster: string) => string) | undefined {
  const deep = filled.find((each) => !each.isOfTemplate && !each.allowsPath && each.value.includes("/"));
  if (deep !== undefined) {
    const { expression, value } = deep;
    return (cluster) =>
      `${expression} of cluster ${cluster} is "${excerpt(value)}", which is more than the name of one folder; correct it, or write {{ ${expression} | path }} to allow several folders`;
  }
  let start = 0;
  for (const name of path.split("/")) {
    const [first = 0, last] = [start, start + name.length];
    start = last + 1;
    if (name !== "" && name !== ".") continue;
    const cause = filled.find(({ at, value }) => at <= last && at + value.length >= first);
    if (cause === undefined) continue;
    return (cluster) =>
      `"${excerpt(path)}" for cluster ${cluster} is not the intended folder: {{ ${cause.expression} }} fills the name of a folder, which must not be empty, "." or ".."; correct its value`;
  }
  return undefined;
}

function valueAt(values: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return values;
  if (typeof values !== "object" || values === null || Array.isArray(values)) return undefined;
  const found = ownValue(values as Readonly<Record<string, unknown>>, name);
  return found === undefined ? undefined : valueAt(found, rest);
}

function missingMessage(missing: readonly string[], cluster: TemplateCluster): string {
  const places = [
    [
      "cluster.labels.",
      "set the label on the Cluster (metadata.labels), or take it from a tag (spec.labels.fromTags of its ClusterDiscovery)",
    ],
    [
      "cluster.values.",
      "set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery)",
    ],
    ["params.", "set the parameter in the template's parameters, or in those of an override for the cluster"],
  ] as const;
  const remedies = places.filter(([prefix]) => missing.some((key) => key.startsWith(prefix))).map(([, place]) => place);
  return `cluster ${cluster.name} has no ${missing.join(", ")}; ${remedies.join("; ")}; or add | default(text)`;
}
