import type { TypeRef } from "#apiserver/apply/schema.ts";
import type { JsonObject } from "#apiserver/json.ts";
import type { StructuralSchema } from "#apiserver/kinds/structural-schema.ts";

/** A resource that the server serves: one plural in one group. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
  /** With "spec", metadata.generation counts changes of the spec; with "annotations" also changes of annotations. */
  readonly generation: "none" | "spec" | "annotations";
  /** A completed DELETE answers with the object instead of a Status. */
  readonly deleteAnswersObject: boolean;
  /** A PUT without a resourceVersion overwrites the object. */
  readonly unconditionalUpdate: boolean;
  /** A PUT of an object that does not exist creates it. */
  readonly createOnUpdate: boolean;
  readonly typeIn: (version: string) => TypeRef | undefined;
  /** Converts an object, or a part of one, to another version. Set where versions differ. */
  readonly convert?: (object: JsonObject, apiVersion: string) => JsonObject;
  /** Set for custom resources only. */
  readonly custom?: CustomResource;
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** The group and version of a subresource that belongs to another API. */
  readonly group?: string;
  readonly version?: string;
}

/** A kind of a CustomResourceDefinition, in one of its versions. */
export interface CustomResource {
  readonly crdName: string;
  readonly schema: StructuralSchema;
  readonly printerColumns: readonly JsonObject[];
  readonly scale: JsonObject | undefined;
  /** Objects as last read: every read prunes and defaults them. */
  readonly cache: WeakMap<JsonObject, JsonObject>;
}

export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** The group and version of an apiVersion; the core group is empty. */
export function apiVersionParts(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: slash < 0 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The key of a resource over all its versions, for example `apps/deployments`. */
export function resourceKey(group: string, plural: string): string {
  return `${group}/${plural}`;
}

/** The Go package of a group's types, for example `rbac` for `rbac.authorization.k8s.io`. */
export function goGroup(group: string): string {
  return group === "" ? "core" : group.replace(/\..*/, "");
}

/** The Go type of a built-in kind, for example `apps.v1.Deployment`. */
export function goTypeName({ group, version, kind }: Pick<Kind, "group" | "version" | "kind">): string {
  return `${goGroup(group)}.${version}.${kind}`;
}

/** An object in another version of its kind. */
export function inVersion(kind: Pick<Kind, "convert">, object: JsonObject, apiVersion: string): JsonObject {
  const { convert } = kind;
  return convert === undefined || object.apiVersion === apiVersion ? object : convert(object, apiVersion);
}

export function hasSubresource(kind: Kind, name: string): boolean {
  return kind.subresources.some((subresource) => subresource.name === name);
}
