import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { groupOf, type ObjectId } from "#shared/kube/object-id.ts";

/** A Kubernetes object in git. Only its apiVersion, kind and name are known to exist. */
export interface ManifestObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ManifestMetadata;
}

export interface ManifestMetadata extends JsonObject {
  readonly name: string;
  readonly namespace?: string;
}

/**
 * An object in a server's answer. Read it with the functions below, because other systems write it and any field may be
 * missing.
 */
export type KubeObject = JsonObject;

export interface ManagedFieldsEntry extends JsonObject {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly subresource?: string;
  readonly fieldsV1?: JsonObject;
}

/**
 * The field manager of every apply of Starling. The name must never change, because ownership in the cluster depends on
 * it.
 */
export const fieldManager = "starling";

/** The value at a path, or undefined when a part of the path is missing or not an object. */
export function valueAt(object: Json | undefined, ...path: readonly string[]): Json | undefined {
  let value: Json | undefined = object;
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

/** The string members of the map at a path: labels, annotations. */
export function stringMapAt(object: Json | undefined, ...path: readonly string[]): Readonly<Record<string, string>> {
  const value = valueAt(object, ...path);
  if (!isJsonObject(value)) return {};
  const strings: Record<string, string> = {};
  for (const [key, member] of Object.entries(value)) if (typeof member === "string") strings[key] = member;
  return strings;
}

export function labelsOf(object: Json | undefined): Readonly<Record<string, string>> {
  return stringMapAt(object, "metadata", "labels");
}

export function annotationsOf(object: Json | undefined): Readonly<Record<string, string>> {
  return stringMapAt(object, "metadata", "annotations");
}

export function managedFieldsOf(object: Json | undefined): readonly ManagedFieldsEntry[] {
  return listAt(object, "metadata", "managedFields").filter(isJsonObject) as readonly ManagedFieldsEntry[];
}

/** The entry of Starling's own applies. Entries of subresources are separate ownership. */
export function ownApplyEntry(object: Json | undefined): ManagedFieldsEntry | undefined {
  return managedFieldsOf(object).find(
    (entry) => entry.manager === fieldManager && entry.operation === "Apply" && (entry.subresource ?? "") === "",
  );
}

/** `metadata.generation`, or 0 for kinds without it. */
export function generationOf(object: Json | undefined): number {
  const generation = valueAt(object, "metadata", "generation");
  return typeof generation === "number" ? generation : 0;
}

export function isBeingDeleted(object: Json | undefined): boolean {
  return (stringAt(object, "metadata", "deletionTimestamp") ?? "") !== "";
}

/** The identity of an object. Items of lists lack apiVersion and kind, and need `as`. */
export function objectIdOf(object: KubeObject, as?: { readonly group: string; readonly kind: string }): ObjectId {
  return {
    group: as?.group ?? groupOf(stringAt(object, "apiVersion") ?? ""),
    kind: as?.kind ?? stringAt(object, "kind") ?? "",
    namespace: stringAt(object, "metadata", "namespace") ?? "",
    name: stringAt(object, "metadata", "name") ?? "",
  };
}
