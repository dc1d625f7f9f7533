import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { describeObject, groupOf } from "#shared/kube/object-id.ts";
import { describeValue, ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { type ParseOptions, parseDocuments } from "#shared/source/yaml/yaml.ts";

/** One object of a file. */
export interface ManifestDocument {
  readonly object: JsonObject;
  readonly file: string;
  readonly document: number;
  readonly line: number;
  /** The place of a list's item inside the list, such as `items[0]`. */
  readonly field?: string;
  /** A problem of the document that was tolerated, as a sentence. */
  readonly remark?: string;
}

/**
 * The objects of a file that may contain nothing else. Lists are flattened at every depth, and kustomizations are left
 * out.
 * @throws ManifestError `InvalidYaml`, `NotKubernetes` for a document that is a list or a scalar, `InvalidObject` for
 * such an item of a list.
 */
export function parseManifests(text: string, file: string, options: ParseOptions = {}): ManifestDocument[] {
  return parseDocuments(text, file, options).flatMap(({ value, document, line }) => {
    if (isJsonObject(value)) return flatten({ object: value, file, document, line });
    const got = Array.isArray(value) ? "a list" : `the ${typeof value} ${JSON.stringify(String(value)).slice(0, 60)}`;
    throw new ManifestError("NotKubernetes", { file, document, line }, `got ${got}, expected a Kubernetes object`);
  });
}

/** The object's place, and the prefix of its fields' names. */
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

/**
 * An item of a typed list (`ConfigMapList`) may leave out apiVersion and kind, as in a server's answer. The list's
 * values then apply.
 */
function asItemOf(list: JsonObject, item: JsonObject): JsonObject {
  if (item.kind !== undefined || typeof list.kind !== "string") return item;
  return { apiVersion: list.apiVersion, kind: list.kind.slice(0, -"List".length), ...item };
}

/** A kustomization is an instruction for kustomize and not an object, in whatever folder it lies. */
function isKustomizeConfig({ apiVersion }: JsonObject): boolean {
  return typeof apiVersion === "string" && groupOf(apiVersion) === "kustomize.config.k8s.io";
}
