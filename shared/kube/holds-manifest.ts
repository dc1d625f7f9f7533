/** Decides without a request whether a live object already contains a manifest. The function is pure. */
import { canonicalJson, isJsonObject, type Json, type JsonObject, parseJson } from "#shared/base/json.ts";
import { type KubeObject, type ManifestObject, ownApplyEntry } from "#shared/kube/kube-object.ts";
import type { FieldsV1 } from "#shared/kube/managed-fields.ts";

/**
 * True only if Starling's own apply owns exactly the fields of the manifest, in its version, and each field has the
 * manifest's value. An apply would then change nothing. False proves nothing, because the server may write a value
 * differently (`1000m` as `1`); the server must be asked.
 */
export function holdsManifest(live: KubeObject, { apiVersion, kind: _kind, ...manifest }: ManifestObject): boolean {
  const own = ownApplyEntry(live);
  if (own?.apiVersion !== apiVersion || !isJsonObject(own.fieldsV1)) return false;
  const { name: _name, namespace: _namespace, ...metadata } = manifest.metadata;
  return holds({ ...manifest, metadata }, live, own.fieldsV1);
}

function holds(desired: Json | undefined, live: Json | undefined, fields: FieldsV1): boolean {
  if (desired === undefined || live === undefined) return false;
  const children = Object.entries(fields).filter(([key]) => key !== ".");
  if (children.length === 0) return canonicalJson(desired) === canonicalJson(live);
  if (Array.isArray(desired)) return Array.isArray(live) && holdsList(desired, live, children);
  if (!isJsonObject(desired) || !isJsonObject(live)) return false;
  if (Object.keys(desired).length !== children.length) return false;
  return children.every(([key, child]) => {
    const name = key.slice(2);
    return key.startsWith("f:") && Object.hasOwn(desired, name) && holds(desired[name], live[name], nodeOf(child));
  });
}

/** Whether every item of the manifest is owned, in the same order. */
function holdsList(
  desired: readonly Json[],
  live: readonly Json[],
  children: readonly (readonly [string, Json | undefined])[],
): boolean {
  if (desired.length !== children.length) return false;
  let place = -1;
  return desired.every((item) => {
    const child = children.find(([key, node]) => isItem(item, key, nodeOf(node)));
    if (child === undefined) return false;
    const [key, node] = child;
    const found = live.findIndex((one, index) => index > place && isItem(one, key, {}));
    if (found === -1) return false;
    place = found;
    return key.startsWith("v:") || holds(item, live[found], nodeOf(node));
  });
}

/** A key that the manifest leaves to its default is not owned, but still belongs to the item. */
function isItem(item: Json, key: string, node: FieldsV1): boolean {
  const name = parseJson(key.slice(2));
  if (key.startsWith("v:")) return canonicalJson(item) === canonicalJson(name);
  if (!key.startsWith("k:") || !isJsonObject(name) || !isJsonObject(item)) return false;
  return Object.entries(name).every(([field, value]) =>
    item[field] === undefined
      ? Object.keys(node).length > 0 && node[`f:${field}`] === undefined
      : canonicalJson(item[field]) === canonicalJson(value ?? null),
  );
}

function nodeOf(child: Json | undefined): JsonObject {
  return isJsonObject(child) ? child : {};
}
