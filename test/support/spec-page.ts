/** The pages below docs/spec: a section for each field, with examples and wrong values that are tried. */
import { readFileSync, writeFileSync } from "node:fs";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { parseDocument, type WritableKind } from "#shared/fleet/kinds/document.ts";
import type { KindField } from "#shared/fleet/kinds/kind-fields.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

const folder = new URL("../../docs/spec/", import.meta.url);

export interface FieldSection {
  /** The fields that its title names. */
  readonly fields: readonly string[];
  readonly text: string;
}

/** A row of a section's table of wrong values. */
export interface WrongValue {
  readonly fields: readonly string[];
  /** YAML with the wrong members, at the level of the field. */
  readonly yaml: string;
  /** The error that the page promises. */
  readonly error: string;
}

/** @param name - of the page: `syncgroup`. */
export function readSpecPage(name: string): string {
  return readFileSync(new URL(`${name}.md`, folder), "utf8");
}

/** Sections whose titles name fields: ``### `spec.paths` ``. */
export function fieldSections(page: string): readonly FieldSection[] {
  return page.split(/^(?=#{2,4} )/m).flatMap((text): readonly FieldSection[] => {
    const [title = ""] = text.split("\n", 1);
    const fields = [...title.matchAll(/`([^`]+)`/g)].map(([, field = ""]) => field);
    return fields.length === 0 ? [] : [{ fields, text }];
  });
}

/** The line below a title, such as `Type: string. Default: "10m". At most 100 items.` */
function typeText({ type, required, default: fallback, most }: KindField): string {
  const presence = required ? "Required." : fallback === undefined ? "Optional." : `Default: \`${fallback}\`.`;
  return [`Type: ${type}.`, presence, ...(most === undefined ? [] : [`At most ${most}.`])].join(" ");
}

function yamlBlocks(text: string): readonly string[] {
  return [...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = ""]) => yaml);
}

/** Every document of the text; a block that is a part of one is laid over the page's first document. */
export function exampleDocuments(text: string, page = text): readonly JsonObject[] {
  return yamlBlocks(text).flatMap((yaml) =>
    objectsOf(yaml).map((object) => ("kind" in object ? object : laidOver(firstDocument(page), object))),
  );
}

function firstDocument(page: string): JsonObject {
  const [yaml = ""] = yamlBlocks(page);
  const [document = {}] = objectsOf(yaml);
  return document;
}

function objectsOf(yaml: string): readonly JsonObject[] {
  return parseDocuments(yaml, "page.md").flatMap(({ value }) => (isJsonObject(value) ? [value] : []));
}

/** Fields of which an example may show a part. All other fields are complete in an example. */
const laidOverFields: ReadonlySet<string> = new Set(["metadata", "spec", "git", "rollout"]);

function laidOver(base: JsonObject, over: JsonObject): JsonObject {
  const merged: Record<string, JsonObject[string]> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const before = base[name];
    const isPart = laidOverFields.has(name) && isJsonObject(before) && isJsonObject(value);
    merged[name] = isPart ? laidOver(before, value) : value;
  }
  return merged;
}

/** As `starling validate` prints them behind file, line and object. */
export function errorsOf(document: unknown): readonly string[] {
  const parsed = parseDocument(document);
  const problems = parsed.ok ? semanticProblems(parsed.document) : parsed.problems;
  return problems.map(({ field, message }) => `${field} ${message}`.trim());
}

const wrongRow = /^\| (`+) ?(.+?) ?\1 \| (`+) ?(.*?) ?\3 \|$/gm;

export function wrongValues({ fields, text }: FieldSection): readonly WrongValue[] {
  return [...text.matchAll(wrongRow)].map(([, , yaml = "", , error = ""]) => ({
    fields,
    yaml: yaml.replaceAll("\\|", "|"),
    error: error.replaceAll("\\|", "|"),
  }));
}

/** The nearest example with the members of `yaml` at the level of the section's first field; `~` deletes a member. */
export function withWrong(page: string, section: FieldSection, yaml: string): JsonObject {
  const [document = firstDocument(page)] = nearestExamples(page, section);
  const copy = structuredClone(document) as Record<string, unknown>;
  const [field = ""] = section.fields;
  const steps = field.split(".").slice(0, -1);
  let place: Record<string, unknown> = copy;
  for (const step of steps) place = memberOf(place, step);
  for (const [name, value] of Object.entries(objectsOf(yaml)[0] ?? {})) {
    if (value === null) delete place[name];
    else place[name] = value;
  }
  return copy as JsonObject;
}

/** The examples of the section, or of the nearest field around the section's field. */
function nearestExamples(page: string, { fields: [field = ""], text }: FieldSection): readonly JsonObject[] {
  const own = exampleDocuments(text, page);
  if (own.length > 0) return own;
  const above = fieldSections(page).filter(({ fields: [other = ""] }) => /^(\[\])?\./.test(field.replace(other, "")));
  return (
    above
      .toReversed()
      .map((one) => exampleDocuments(one.text, page))
      .find((found) => found.length > 0) ?? []
  );
}

function memberOf(place: Record<string, unknown>, step: string): Record<string, unknown> {
  const name = step.replace("[]", "");
  if (!step.endsWith("[]")) {
    place[name] ??= {};
    return place[name] as Record<string, unknown>;
  }
  place[name] ??= [{}];
  const [first] = place[name] as Record<string, unknown>[];
  return first ?? {};
}

/** Writes types and errors into a page: after a change of a schema or of its messages. */
export function updateSpecPage(name: string, kind: WritableKind, fields: readonly KindField[]): void {
  const page = readSpecPage(name);
  let written = page;
  for (const section of fieldSections(page)) {
    let text = section.text.replace(/^(#+ .*\n\n)(?:Type: .*\n\n|(?:- `.*`: Type: .*\n)+\n)?/, (_, title: string) => {
      return `${title}${typesText(section, fields)}\n\n`;
    });
    for (const { yaml, error } of wrongValues(section)) {
      const [found = "no error"] = errorsOf(withWrong(page, { ...section, text: section.text }, yaml));
      if (found !== error) text = text.replace(rowOf(yaml, error), () => rowOf(yaml, found));
    }
    written = written.replace(section.text, () => text);
  }
  if (written !== page) writeFileSync(new URL(`${name}.md`, folder), written);
  if (!page.includes(kind) && name !== "common") throw new Error(`${name}.md is not about ${kind}`);
}

export function typesText({ fields: named }: FieldSection, fields: readonly KindField[]): string {
  const found = named.flatMap((path) => fields.find((field) => field.path === path) ?? []);
  const [only] = found;
  if (found.length === 1 && only !== undefined) return typeText(only);
  return found.map((field) => `- \`${field.path}\`: ${typeText(field)}`).join("\n");
}

function rowOf(yaml: string, error: string): string {
  return `| ${quoted(yaml)} | ${quoted(error)} |`;
}

/** The text as a code span in a table, also when it contains backticks. */
function quoted(text: string): string {
  const escaped = text.replaceAll("|", "\\|");
  return escaped.includes("`") ? `\`\` ${escaped} \`\`` : `\`${escaped}\``;
}
