/** Objects and patches on their way through kustomize, which changes, drops or refuses what is none of its business. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import { expansionOf, parseDocuments } from "#shared/source/yaml/yaml.ts";

/** Of a patch, in characters. */
const maxExpansion = 262_144;
/** Of private use, and written as they are: one of them begins what stands for one character, and four digits follow. */
const [firstMark, lastMark] = [0xe000, 0xf8ff];
/** Line ends of Unicode, which its YAML folds into blanks, and what it cannot write (seen: kustomize 5.7). */
const changed = "\\u007f-\\u009f\\u2028\\u2029\\ufffe\\uffff";
/**
 * Annotations that it keeps its own notes in, and takes away at the end; some that are not its own make it panic. By `local-config`
 * a patch takes an object out: no object has it that comes here.
 */
const noted = /^(?:[a-z]+\.)*config\.(?:kubernetes|k8s)\.io\/(?!local-config$)/;

/**
 * A mark that nothing has which kustomize reads beside the guarded objects, as it is or as YAML and JSON can write it: what has it
 * in what comes out was guarded.
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

/** The object in a form that passes through kustomize; `restored` gives it back. */
export function guardedObject(object: JsonObject, mark: string): JsonObject {
  const plain = guardedTexts(object, mark) as JsonObject;
  const { metadata } = plain;
  if (!isJsonObject(metadata) || !isJsonObject(metadata.annotations)) return plain;
  const annotations = Object.entries(metadata.annotations).map(([name, value]) => [guardedName(name, mark), value]);
  return { ...plain, metadata: { ...metadata, annotations: Object.fromEntries(annotations) } };
}

/**
 * A patch in the same form, to go over guarded objects; as it is where nothing of it is to be guarded, and where it is no YAML, of
 * which kustomize is to speak.
 */
export function guardedPatch(patch: string, mark: string): string {
  if (isExplosive(patch)) return patch;
  const operations = readPatch(patch, "1.1");
  // What is a list is a JSON patch, which kustomize reads otherwise than the part of an object.
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

/** Aliases are written out in what is guarded: what these come to is checked, and refused, where the patch has them still. */
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

/** Of an annotation. */
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

/** Every text changed, keys too. */
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
