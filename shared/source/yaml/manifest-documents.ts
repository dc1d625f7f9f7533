import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, groupOf } from "#shared/kube/object-id.ts";
import { describeValue, ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { type ParseOptions, parseDocuments } from "#shared/source/yaml/yaml.ts";

/** One object as it stands in a file. */
export interface ManifestDocument {
  readonly object: JsonObject;
  readonly file: string;
  readonly document: number;
  readonly line: number;
  /** Of an item of a list: where in it, as `items[0]`. */
  readonly field?: string;
  /** What is wrong with it and was let pass, in words. */
  readonly remark?: string;
}

/**
 * The objects of a file that may hold nothing else: lists are flattened at every depth, and kustomizations left out.
 * @throws ManifestError `InvalidYaml`, `NotKubernetes` for a document that is a list or a scalar, `InvalidObject` for such
 *   an item of a list.
 */
export function parseManifests(text: string, file: string, options: ParseOptions = {}): ManifestDocument[] {
  return parseDocuments(text, file, options).flatMap(({ value, document, line }) => {
    if (isJsonObject(value)) return flatten({ object: value, file, document, line });
    const got = Array.isArray(value) ? "a list" : `the ${typeof value} ${JSON.stringify(String(value)).slice(0, 60)}`;
    throw new ManifestError("NotKubernetes", { file, document, line }, `got ${got}, expected a Kubernetes object`);
  });
}

/** Where an object is, and what goes before the names of its fields. */
export function placeOf({ object, file, document, line, field: list }: ManifestDocument) {
  const described = typeof object.kind === "string" ? { object: describeObject(objectIdOf(object)).trim() } : {};
  return { at: { file, document, line, ...described }, prefix: list === undefined ? "" : `${list}.` };
}

function flatten(found: ManifestDocument): ManifestDocument[] {
  const { object, field: list } = found;
  const { kind, items } = object;
  if (isKustomizeConfig(object)) return [];
  if (typeof kind !== "string" || !kind.endsWith("List")) return [found];
  if (kind === "List" && (items === undefined || items === null)) return [];
  if (!Array.isArray(items)) return [found];
  return items.flatMap((item: Json, index) => {
    const field = list === undefined ? `items[${index}]` : `${list}.items[${index}]`;
    if (!isJsonObject(item)) {
      const { file, document, line } = found;
      throw new ManifestError(
        "InvalidObject",
        { file, document, line, field },
        `got ${describeValue(item)}, expected an object`,
      );
    }
    return flatten({ ...found, object: kind === "List" ? item : asItemOf(object, item), field });
  });
}

/** Items of a typed list (`ConfigMapList`) may leave out what the list already says, as in a server's answer. */
function asItemOf(list: JsonObject, item: JsonObject): JsonObject {
  if (item.kind !== undefined || typeof list.kind !== "string") return item;
  return { apiVersion: list.apiVersion, kind: list.kind.slice(0, -"List".length), ...item };
}

/** A kustomization is an instruction for kustomize and no object, whatever folder it lies in. */
function isKustomizeConfig({ apiVersion }: JsonObject): boolean {
  return typeof apiVersion === "string" && groupOf(apiVersion) === "kustomize.config.k8s.io";
}
