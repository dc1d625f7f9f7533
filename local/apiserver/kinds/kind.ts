import type { TypeRef } from "#apiserver/apply/schema.ts";
import type { JsonObject } from "#apiserver/json.ts";
import type { StructuralSchema } from "#apiserver/kinds/structural-schema.ts";

/** A resource as the server serves it: one plural in one group. */
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
  /** metadata.generation counts the changes of the spec; "annotations" counts those of annotations too. */
  readonly generation: "none" | "spec" | "annotations";
  /** A finished DELETE answers with the object instead of a Status. */
  readonly deleteAnswersObject: boolean;
  /** A PUT without resourceVersion overwrites. */
  readonly unconditionalUpdate: boolean;
  /** A PUT of what is not there creates it. */
  readonly createOnUpdate: boolean;
  readonly typeIn: (version: string) => TypeRef | undefined;
  /** Set where versions differ: an object, or a part of one, in another of them. */
  readonly convert?: (object: JsonObject, apiVersion: string) => JsonObject;
  /** Set for custom resources. */
  readonly custom?: CustomResource;
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** The group and version of another API the subresource speaks. */
  readonly group?: string;
  readonly version?: string;
}

/** A kind that a CustomResourceDefinition serves, in one of its versions. */
export interface CustomResource {
  readonly crdName: string;
  readonly schema: StructuralSchema;
  readonly printerColumns: readonly JsonObject[];
  readonly scale: JsonObject | undefined;
  /** Objects as they were read last: they are pruned and defaulted on every read. */
  readonly cache: WeakMap<JsonObject, JsonObject>;
}

export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** The group and version of an apiVersion; "" is the core group. */
export function apiVersionParts(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: slash < 0 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** `apps/deployments`: the key of a resource over all its versions. */
export function resourceKey(group: string, plural: string): string {
  return `${group}/${plural}`;
}

/** The Go package of a group's types: `rbac` for `rbac.authorization.k8s.io`. */
export function goGroup(group: string): string {
  return group === "" ? "core" : group.replace(/\..*/, "");
}

/** The Go type of a built-in kind: `apps.v1.Deployment`. */
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
