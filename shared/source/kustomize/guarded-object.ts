/** Protects objects and patches on their way through kustomize, which changes, drops or refuses some texts. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import { expansionOf, parseDocuments } from "#shared/source/yaml/yaml.ts";

/** The limit of a patch with its aliases expanded, in characters. */
const maxExpansion = 262_144;
/**
 * Characters of private use, which kustomize keeps. One of them marks a replaced character, and four digits follow it.
 */
const [firstMark, lastMark] = [0xe000, 0xf8ff];
/**
 * Characters that kustomize's YAML folds into blanks (line ends of Unicode) or cannot write (seen with kustomize 5.7).
 */
const changed = "\\u007f-\\u009f\\u2028\\u2029\\ufffe\\uffff";
/**
 * Annotations in which kustomize keeps its own notes. It removes them at the end, and some with a foreign value make it
 * panic. `local-config` is left out: with it, a patch removes an object, and no object that comes here has it.
 */
const noted = /^(?:[a-z]+\.)*config\.(?:kubernetes|k8s)\.io\/(?!local-config$)/;

/**
 * A character that nothing has which kustomize reads besides the guarded objects, neither as it is nor escaped in YAML
 * or JSON. Any text with it in the output was guarded.
 */
export function freeMark(contents: readonly Uint8Array[]): string {
  const texts = contents.map((content) => Buffer.from(content.buffer, content.byteOffset, content.length));
  for (let code = firstMark; code <= lastMark; code++) {
    const mark = String.fromCharCode(code);
    const digits = code.toString(16);
    const written = [digits, digits.toUpperCase()].flatMap((one) => [`\\u${one}`, `\\U0000${one}`]);
    if (!texts.some((text) => [mark, ...written].some((form) => text.includes(form)))) return mark;
  }
  throw new Error("the files use every character of private use");
}

/** The object in a form that kustomize leaves unchanged; `restoredObject` undoes it. */
export function guardedObject(object: JsonObject, mark: string): JsonObject {
  const plain = guardedTexts(object, mark) as JsonObject;
  const { metadata } = plain;
  if (!isJsonObject(metadata) || !isJsonObject(metadata.annotations)) return plain;
  const annotations = Object.entries(metadata.annotations).map(([name, value]) => [guardedName(name, mark), value]);
  return { ...plain, metadata: { ...metadata, annotations: Object.fromEntries(annotations) } };
}

/**
 * The patch in the same form, so that it matches guarded objects. A patch is returned unchanged when it needs no guard.
 * The same holds when it is not YAML: kustomize then reports the problem.
 */
export function guardedPatch(patch: string, mark: string): string {
  if (isExplosive(patch)) return patch;
  const operations = readPatch(patch, "1.1");
  // A list is a JSON patch. kustomize reads its booleans differently from those in a part of an object.
  const isList = operations?.length === 1 && Array.isArray(operations[0]);
  const documents = isList ? operations : readPatch(patch, "1.2");
  if (documents === undefined) return patch;
  const guarded = documents.map((value) => {
    if (isJsonObject(value)) return guardedObject(value, mark);
    return Array.isArray(value) ? value.map((one: Json) => guardedOperation(one, mark)) : value;
  });
  const written = guarded.map(jsonAsYaml).join("\n---\n");
  return written === documents.map(jsonAsYaml).join("\n---\n") ? patch : written;
}

/**
 * Guarding expands aliases. A patch that becomes too large is left unchanged, and kustomize's check of aliases refuses
 * it.
 */
function isExplosive(patch: string): boolean {
  try {
    return expansionOf(patch, "") > maxExpansion;
  } catch {
    return true;
  }
}

function readPatch(patch: string, booleans: "1.1" | "1.2"): readonly Json[] | undefined {
  try {
    return parseDocuments(patch, "", { booleans }).map(({ value }) => value);
  } catch {
    return undefined;
  }
}

const toAnnotation = "/metadata/annotations/";

function guardedOperation(operation: Json, mark: string): Json {
  const plain = guardedTexts(operation, mark);
  if (!isJsonObject(plain) || typeof plain.path !== "string" || !plain.path.startsWith(toAnnotation)) return plain;
  const name = plain.path.slice(toAnnotation.length);
  const guarded = guardedName(name.replaceAll("~1", "/"), mark).replaceAll("/", "~1");
  return { ...plain, path: toAnnotation + guarded };
}

function guardedTexts(value: Json, mark: string): Json {
  const unsafe = new RegExp(`[${changed}${mark}]`, "g");
  return mapTexts(value, (text) => text.replaceAll(unsafe, (found) => markOf(found, mark)));
}

/** The name of an annotation. */
function guardedName(name: string, mark: string): string {
  return noted.test(name) ? markOf(name, mark) + name.slice(1) : name;
}

function markOf(text: string, mark: string): string {
  return `${mark}${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function restoredObject(object: JsonObject, mark: string): JsonObject {
  const guarded = new RegExp(`${mark}([0-9a-f]{4})`, "g");
  const back = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  return mapTexts(object, (text) => (text.includes(mark) ? text.replaceAll(guarded, back) : text)) as JsonObject;
}

/** Changes every string, including keys. */
function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item: Json) => mapTexts(item, change));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([key, member]) => [
    change(key),
    member === undefined ? undefined : mapTexts(member, change),
  ]);
  return Object.fromEntries(members);
}
