import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { groupOf, type ObjectId } from "#shared/kube/object-id.ts";

/** A Kubernetes object as it is in git: what is known for sure is that it says what it is. */
export interface ManifestObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ManifestMetadata;
}

export interface ManifestMetadata extends JsonObject {
  readonly name: string;
  readonly namespace?: string;
}

/** An object as a server answers it. Read it through the functions below: other systems write it, so nothing is sure. */
export type KubeObject = JsonObject;

export interface ManagedFieldsEntry extends JsonObject {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly subresource?: string;
  readonly fieldsV1?: JsonObject;
}

/** The field manager of every apply of Starling; one name, for ever: ownership in the cluster hangs on it. */
export const fieldManager = "starling";

/** The value at a path, or undefined when anything on the way is missing or no object. */
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

/** The entry that Starling's own applies write; entries of subresources are another ownership. */
export function ownApplyEntry(object: Json | undefined): ManagedFieldsEntry | undefined {
  return managedFieldsOf(object).find(
    (entry) => entry.manager === fieldManager && entry.operation === "Apply" && (entry.subresource ?? "") === "",
  );
}

/** `metadata.generation`, 0 where the kind has none. */
export function generationOf(object: Json | undefined): number {
  const generation = valueAt(object, "metadata", "generation");
  return typeof generation === "number" ? generation : 0;
}

export function isBeingDeleted(object: Json | undefined): boolean {
  return (stringAt(object, "metadata", "deletionTimestamp") ?? "") !== "";
}

/** The identity of an object that names itself; items of lists lack apiVersion and kind and need `as`. */
export function objectIdOf(object: KubeObject, as?: { readonly group: string; readonly kind: string }): ObjectId {
  return {
    group: as?.group ?? groupOf(stringAt(object, "apiVersion") ?? ""),
    kind: as?.kind ?? stringAt(object, "kind") ?? "",
    namespace: stringAt(object, "metadata", "namespace") ?? "",
    name: stringAt(object, "metadata", "name") ?? "",
  };
}
