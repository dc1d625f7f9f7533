import { builtinType } from "#apiserver/apply/schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { toGoObject } from "#apiserver/kinds/go-object.ts";
import { apiVersionOf, type CustomResource, inVersion, type Kind, type Subresource } from "#apiserver/kinds/kind.ts";
import { fillDefaults, prune, type StructuralSchema, typeOfRoot } from "#apiserver/kinds/structural-schema.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";

const customVerbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const readWrite = ["get", "patch", "update"];

function strings(values: readonly Json[]): string[] {
  return values.filter((value): value is string => typeof value === "string");
}

function subresourcesOf(version: JsonObject, kind: string): Subresource[] {
  const subresources = isJsonObject(version.subresources) ? version.subresources : {};
  const served: Subresource[] = [];
  if (isJsonObject(subresources.status)) served.push({ name: "status", kind, verbs: readWrite });
  if (isJsonObject(subresources.scale)) {
    served.push({ name: "scale", kind: "Scale", verbs: readWrite, group: "autoscaling", version: "v1" });
  }
  return served;
}

/** The served versions of an established CustomResourceDefinition, the preferred one first. */
export function customKinds(crd: JsonObject): Kind[] {
  const group = stringAt(crd, "spec", "group") ?? "";
  const names = valueAt(crd, "spec", "names");
  const kind = stringAt(names, "kind") ?? "";
  const versions = listAt(crd, "spec", "versions").filter(isJsonObject);
  const types = new Map(versions.map((version) => [String(version.name), typeOfRoot(schemaOf(version))]));
  const kinds = versions.map((version): Kind & { readonly served: boolean } => ({
    served: version.served === true,
    group,
    version: String(version.name),
    kind,
    plural: stringAt(names, "plural") ?? "",
    singular: stringAt(names, "singular") ?? kind.toLowerCase(),
    listKind: stringAt(names, "listKind") ?? `${kind}List`,
    shortNames: strings(listAt(names, "shortNames")),
    categories: strings(listAt(names, "categories")),
    namespaced: stringAt(crd, "spec", "scope") === "Namespaced",
    verbs: customVerbs,
    subresources: subresourcesOf(version, kind),
    generation: "spec",
    deleteAnswersObject: false,
    unconditionalUpdate: false,
    createOnUpdate: false,
    typeIn: (name) => types.get(name),
    custom: {
      crdName: stringAt(crd, "metadata", "name") ?? "",
      schema: schemaOf(version),
      printerColumns: listAt(version, "additionalPrinterColumns").filter(isJsonObject),
      scale: isJsonObject(valueAt(version, "subresources", "scale"))
        ? (valueAt(version, "subresources", "scale") as JsonObject)
        : undefined,
      cache: new WeakMap(),
    },
  }));
  return kinds
    .filter(({ served }) => served)
    .map(({ served: _, ...each }) => each)
    .sort((a, b) => compareVersions(a.version, b.version));
}

function schemaOf(version: JsonObject): StructuralSchema {
  const schema = valueAt(version, "schema", "openAPIV3Schema");
  return isJsonObject(schema) ? schema : { type: "object", "x-kubernetes-preserve-unknown-fields": true };
}

const versionPattern = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/**
 * The order v2, v1, v1beta2, v1beta1, v1alpha1, then all others by name (apimachinery,
 * version.CompareKubeAwareVersionStrings).
 */
export function compareVersions(a: string, b: string): number {
  const left = rank(a);
  const right = rank(b);
  for (const [index, value] of left.entries()) {
    const other = right[index] ?? 0;
    if (value !== other) return other - value;
  }
  return a < b ? -1 : Number(a > b);
}

function rank(version: string): number[] {
  const match = versionPattern.exec(version);
  if (match === null) return [0, 0, 0];
  const stability = { alpha: 1, beta: 2 }[match[2] ?? ""] ?? 3;
  return [stability, Number(match[1]), Number(match[3] ?? 0)];
}

/** A custom resource as the server stores it, pruned and with defaults. `unknown` collects the pruned paths, sorted. */
export function toCustomObject(
  custom: CustomResource,
  value: JsonObject,
  how: { readonly prune: boolean; readonly unknown: string[] },
): JsonObject {
  const { apiVersion, kind, metadata, ...content } = value;
  const unknown: string[] = [];
  const body = how.prune ? prune(custom.schema, content, { path: "", unknown }) : content;
  const filled = fillDefaults(custom.schema, body);
  const meta = toGoObject(() => builtinType("meta.v1.ObjectMeta"), isJsonObject(metadata) ? metadata : {}, {
    unknown,
    defaults: "leave",
  });
  how.unknown.push(...unknown.sort());
  return { apiVersion, kind, metadata: meta, ...(isJsonObject(filled) ? filled : {}) };
}

/**
 * A stored object as a version reads it. A custom resource gets the version's apiVersion. It loses fields that the
 * schema has dropped since the write and gains defaults that the schema has added.
 */
export function readStored(kind: Kind, stored: JsonObject): JsonObject {
  const { custom } = kind;
  if (custom === undefined) return inVersion(kind, stored, apiVersionOf(kind));
  const known = custom.cache.get(stored);
  if (known !== undefined) return known;
  const { apiVersion: _stored, kind: name, metadata, ...content } = stored;
  const kept = prune(custom.schema, content, { path: "", unknown: [] });
  const filled = fillDefaults(custom.schema, kept);
  const read: JsonObject = {
    apiVersion: apiVersionOf(kind),
    ...(name === undefined ? {} : { kind: name }),
    metadata,
    ...(isJsonObject(filled) ? filled : {}),
  };
  custom.cache.set(stored, read);
  return read;
}
