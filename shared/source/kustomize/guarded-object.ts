/** Objects on their way through kustomize, which changes, drops or refuses what is none of its business. */
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";

/** Begins what stands for one character: itself, and four digits. Of private use, and written as it is. */
const mark = "\ue000";
/** Line ends of Unicode, which its YAML folds into blanks, and what it cannot write (seen: kustomize 5.7). */
const changed = /[\u007f-\u009f\u2028\u2029\ue000\ufffe\uffff]/g;
const guarded = /\ue000([0-9a-f]{4})/g;
/** Annotations that it keeps its own notes in, and takes away at the end; some that are not its own make it panic. */
const noted = /^(?:[a-z]+\.)*config\.(?:kubernetes|k8s)\.io\//;

/** The object in a form that passes through kustomize; `restored` gives it back. */
export function guardedObject(object: JsonObject): JsonObject {
  const plain = mapTexts(object, (text) => text.replaceAll(changed, markOf)) as JsonObject;
  const { metadata } = plain;
  if (!isJsonObject(metadata) || !isJsonObject(metadata.annotations)) return plain;
  const annotations = Object.entries(metadata.annotations).map(([name, value]) => [
    noted.test(name) ? markOf(name) + name.slice(1) : name,
    value,
  ]);
  return { ...plain, metadata: { ...metadata, annotations: Object.fromEntries(annotations) } };
}

export function restoredObject(object: JsonObject): JsonObject {
  const back = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, 16));
  return mapTexts(object, (text) => (text.includes(mark) ? text.replaceAll(guarded, back) : text)) as JsonObject;
}

/** What stands for the first character of the text. */
function markOf(text: string): string {
  return `${mark}${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
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
