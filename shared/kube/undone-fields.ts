import { foreignList, foreignText } from "#shared/base/foreign-text.ts";
import { canonicalJson, isJsonObject, type Json, parseJson } from "#shared/base/json.ts";
import {
  fieldManager,
  type KubeObject,
  type ManagedFieldsEntry,
  type ManifestObject,
  managedFieldsOf,
  ownApplyEntry,
} from "#shared/kube/kube-object.ts";
import type { FieldsV1 } from "#shared/kube/managed-fields.ts";

/** The manager that took fields of a manifest from Starling. */
export interface Undoing {
  /** `kube-controller-manager`, or `kube-controller-manager (scale)` for a subresource. */
  readonly by: string;
  /** Such as `spec.replicas, spec.paused and 3 more`, without values. */
  readonly fields: string;
}

const maxName = 100;
const maxFields = 3;
/** Field sets are as deep as their objects. A deeper field is shown by its beginning. */
const maxDepth = 20;

/**
 * The fields of the manifest that others own on the live object, by the last writer. When someone changes a field's
 * value, Starling no longer owns the field. So no values have to be compared, which servers may write differently.
 */
export function undoing(manifest: ManifestObject, live: KubeObject): Undoing {
  const own = ownApplyEntry(live)?.fieldsV1 ?? {};
  const others = managedFieldsOf(live)
    .filter(({ manager, operation, subresource = "" }) => {
      const isOwn = manager === fieldManager && operation === "Apply";
      return !isOwn && subresource !== "status";
    })
    .sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""));
  for (const entry of others) {
    const fields = [...taken(entry.fieldsV1 ?? {}, { value: manifest, own, path: "" })];
    if (fields.length > 0) return { by: nameOf(entry), fields: foreignList(fields, maxFields) };
  }
  const [last] = others;
  return { by: last === undefined ? "somebody" : nameOf(last), fields: "fields of the manifest" };
}

function nameOf({ manager = "somebody", subresource = "" }: ManagedFieldsEntry): string {
  return foreignText(subresource === "" ? manager : `${manager} (${subresource})`, maxName);
}

interface Place {
  readonly value: Json;
  /** The fields that Starling owns there. */
  readonly own: FieldsV1;
  readonly path: string;
  readonly depth?: number;
}

function* taken(theirs: FieldsV1, { value, own, path, depth = 0 }: Place): Generator<string> {
  for (const [key, child] of Object.entries(theirs)) {
    const member = key === "." ? undefined : memberAt(value, key);
    if (member === undefined) continue;
    const ours = own[key];
    const at = `${path}${member.step}`;
    const node = isJsonObject(child) ? child : {};
    const isLeaf = Object.keys(node).every((name) => name === ".");
    if (isLeaf || depth === maxDepth) {
      if (ours === undefined) yield at.replace(/^\./, "");
      continue;
    }
    yield* taken(node, { value: member.value, own: isJsonObject(ours) ? ours : {}, path: at, depth: depth + 1 });
  }
}

/** The part of a manifest to which a key of a field set refers. Items are named by their position, not by values. */
function memberAt(value: Json, key: string): { readonly value: Json; readonly step: string } | undefined {
  const text = key.slice(2);
  if (key.startsWith("f:") && isJsonObject(value)) {
    const member = value[text];
    return member === undefined ? undefined : { value: member, step: `.${text}` };
  }
  if (!Array.isArray(value)) return undefined;
  const index = indexIn(value, key.slice(0, 2), text);
  const item = value[index];
  return item === undefined ? undefined : { value: item, step: `[${index}]` };
}

function indexIn(items: readonly Json[], shape: string, text: string): number {
  if (shape === "i:") return Number(text);
  const desired = parseJson(text);
  if (shape === "v:") return items.findIndex((item) => canonicalJson(item) === canonicalJson(desired));
  if (shape !== "k:" || !isJsonObject(desired)) return -1;
  // A key that the manifest leaves to its default does not distinguish items.
  return items.findIndex(
    (item) =>
      isJsonObject(item) &&
      Object.entries(desired).every(
        ([name, part]) => item[name] === undefined || canonicalJson(item[name]) === canonicalJson(part ?? null),
      ),
  );
}
