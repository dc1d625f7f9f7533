/** Reads fields of objects that clients wrote. Every field may be missing or have a wrong type. */
import { isJsonObject, type Json } from "#apiserver/json.ts";

/** The value at a path; undefined when a step is missing or not an object. */
export function valueAt(object: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value = object;
  for (const key of path) {
    if (!isJsonObject(value)) return undefined;
    value = value[key];
  }
  return value;
}

export function stringAt(object: Json | undefined, ...path: readonly string[]): string | undefined {
  const value = valueAt(object, ...path);
  return typeof value === "string" ? value : undefined;
}

export function listAt(object: Json | undefined, ...path: readonly string[]): readonly Json[] {
  const value = valueAt(object, ...path);
  return Array.isArray(value) ? value : [];
}

export function labelsOf(object: Json | undefined): Readonly<Record<string, string>> {
  return stringsOf(valueAt(object, "metadata", "labels"));
}

export function annotationsOf(object: Json | undefined): Readonly<Record<string, string>> {
  return stringsOf(valueAt(object, "metadata", "annotations"));
}

function stringsOf(value: Json | undefined): Readonly<Record<string, string>> {
  const strings: Record<string, string> = {};
  if (!isJsonObject(value)) return strings;
  for (const [key, member] of Object.entries(value)) if (typeof member === "string") strings[key] = member;
  return strings;
}
