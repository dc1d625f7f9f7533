import { hash } from "node:crypto";
import { canonicalJson, isJsonObject, type Json, type JsonObject, parseJson } from "#shared/base/json.ts";
import {
  annotationsOf,
  fieldManager,
  type KubeObject,
  type ManagedFieldsEntry,
  managedFieldsOf,
  ownApplyEntry,
  stringAt,
} from "#shared/kube/kube-object.ts";

/** RFC 6902. */
export interface JsonPatchOperation {
  readonly op: "test" | "add" | "replace" | "remove";
  readonly path: string;
  readonly value?: Json;
}

/** Annotations of earlier appliers. A later client-side apply would compute deletions from the first one. */
const staleAnnotations = [
  "kubectl.kubernetes.io/last-applied-configuration",
  "kustomize.toolkit.fluxcd.io/checksum",
  "fluxcd.io/sync-checksum",
];

/**
 * The JSON patch that moves the fields of kubectl, of `before-first-apply` and of Starling's own updates to Starling's
 * Apply entry; undefined when nothing must be taken over. Without it, a field that `kubectl` set and git later removed
 * stays forever (kubernetes#99003, kustomize-controller#486). The next apply removes the fields that the manifest
 * lacks.
 *
 * The patch begins with a test of the resourceVersion, so that a concurrent writer does not lose its own entry.
 */
export function takeOverPatch(live: KubeObject, apiVersion: string): readonly JsonPatchOperation[] | undefined {
  const entries = managedFieldsOf(live);
  const taken = entries.filter(isTakenOver);
  if (taken.length === 0) return undefined;
  const own = entries.find(isOwnApply);
  let fields: FieldsV1 = own?.fieldsV1 ?? {};
  for (const entry of taken) fields = unionFields(fields, entry.fieldsV1 ?? {});
  const merged: ManagedFieldsEntry = {
    manager: fieldManager,
    operation: "Apply",
    apiVersion,
    time: own?.time ?? taken[0]?.time ?? "",
    fieldsType: "FieldsV1",
    fieldsV1: fields,
  };
  const rest = entries.filter((entry) => !isTakenOver(entry) && !isOwnApply(entry));
  return replaceEntries(live, [merged, ...rest], removalsOf(live));
}

/**
 * The JSON patch that tags every entry of managedFields with the applied version. It is needed after a definition has
 * gained a version, when entries of the old version make applies fail (fluxcd/pkg#1131).
 */
export function retagPatch(live: KubeObject, apiVersion: string): readonly JsonPatchOperation[] | undefined {
  const entries = managedFieldsOf(live);
  if (entries.every((entry) => entry.apiVersion === apiVersion)) return undefined;
  return replaceEntries(
    live,
    entries.map((entry) => ({ ...entry, apiVersion })),
    [],
  );
}

function replaceEntries(
  live: KubeObject,
  entries: readonly ManagedFieldsEntry[],
  removals: readonly JsonPatchOperation[],
): readonly JsonPatchOperation[] {
  const resourceVersion = stringAt(live, "metadata", "resourceVersion") ?? "";
  return [
    { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
    { op: "replace", path: "/metadata/managedFields", value: entries },
    ...removals,
  ];
}

function removalsOf(live: KubeObject): readonly JsonPatchOperation[] {
  const annotations = annotationsOf(live);
  return staleAnnotations
    .filter((name) => annotations[name] !== undefined)
    .map((name) => ({
      op: "remove",
      path: `/metadata/annotations/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
    }));
}

function isOwnApply(entry: ManagedFieldsEntry): boolean {
  return entry.manager === fieldManager && entry.operation === "Apply" && isWhole(entry);
}

/** `kubectl rollout restart` only requests a restart. Undoing it would restart the Pods again. */
function isTakenOver(entry: ManagedFieldsEntry): boolean {
  const manager = entry.manager ?? "";
  if (!isWhole(entry)) return false;
  if (manager === fieldManager || manager.startsWith("before-first-apply")) return entry.operation === "Update";
  return manager.startsWith("kubectl") && manager !== "kubectl-rollout";
}

function isWhole(entry: ManagedFieldsEntry): boolean {
  return (entry.subresource ?? "") === "";
}

/**
 * The set of fields that a manager owns, in the format of managedFields (`fieldsV1`, structured-merge-diff): `f:name`
 * is a member of a map, `k:{...}` the item of a list with these keys, `v:...` the item of a set with this value, `i:n`
 * the item at an index, `.` the value itself. A node without children is owned as a whole.
 */
export type FieldsV1 = JsonObject;

/** Two digests of what Starling owns of an object: its paths and their values. */
export interface OwnedDigests {
  readonly ownedHash: string;
  readonly valuesHash: string;
}

/**
 * The digests of what Starling owns of a live object, or undefined when it owns nothing. The paths alone do not show
 * that the same manager applied other values, that a foreign PUT reordered a list, or that an admission policy changed
 * an owned key. The values in live order show it.
 */
export function ownedDigests(object: KubeObject): OwnedDigests | undefined {
  const fields = ownApplyEntry(object)?.fieldsV1;
  if (!isJsonObject(fields)) return undefined;
  return { ownedHash: digest(fields), valuesHash: digest(project(object, fields) ?? null) };
}

/**
 * sha256 of the canonical JSON in base64url. Its first 22 characters are 132 bits: enough to detect a change, and short
 * to store.
 */
function digest(value: unknown): string {
  return hash("sha256", canonicalJson(value), "base64url").slice(0, 22);
}

/**
 * The part of a live value that the fields name. Lists keep their live order. Two items with the same key both appear,
 * because a duplicate is a difference. Missing fields are left out.
 */
export function project(value: Json | undefined, fields: FieldsV1): Json | undefined {
  const keys = Object.keys(fields);
  const isWhole = keys.length === 0 || (keys.length === 1 && keys[0] === ".");
  if (isWhole || value === undefined || value === null) return value;
  if (Array.isArray(value)) return projectList(value, fields);
  if (!isJsonObject(value)) return value;
  const owned: Record<string, Json> = {};
  for (const key of keys) {
    if (!key.startsWith("f:")) continue;
    const name = key.slice(2);
    const child = fields[key];
    const member = project(value[name], isJsonObject(child) ? child : {});
    if (member !== undefined) owned[name] = member;
  }
  return owned;
}

function projectList(items: readonly Json[], fields: FieldsV1): Json {
  const select = listSelector(fields);
  const owned: Json[] = [];
  for (const [index, item] of items.entries()) {
    const child = select(item, index);
    if (child === undefined) continue;
    const part = project(item, child);
    if (part !== undefined) owned.push(part);
  }
  return owned;
}

/** Finds the node of an item with one lookup for each shape of key, so that long lists take linear time. */
function listSelector(fields: FieldsV1): (item: Json, index: number) => FieldsV1 | undefined {
  const byValue = new Map<string, FieldsV1>();
  const byIndex = new Map<number, FieldsV1>();
  const byKeys = new Map<string, FieldsV1>();
  const keyShapes = new Map<string, readonly string[]>();
  for (const [key, child] of Object.entries(fields)) {
    const node = isJsonObject(child) ? child : {};
    const text = key.slice(2);
    if (key.startsWith("v:")) byValue.set(canonicalJson(parseJson(text)), node);
    if (key.startsWith("i:")) byIndex.set(Number(text), node);
    if (!key.startsWith("k:")) continue;
    const keys = parseJson(text);
    if (!isJsonObject(keys)) continue;
    const names = Object.keys(keys).sort();
    keyShapes.set(names.join("\n"), names);
    byKeys.set(canonicalJson(keys), node);
  }
  return (item, index) => {
    const indexed = byIndex.get(index) ?? (byValue.size > 0 ? byValue.get(canonicalJson(item)) : undefined);
    if (indexed || !isJsonObject(item)) return indexed;
    for (const names of keyShapes.values()) {
      const keys = Object.fromEntries(names.filter((name) => item[name] !== undefined).map((n) => [n, item[n]]));
      const node = byKeys.get(canonicalJson(keys));
      if (node) return node;
    }
    return undefined;
  };
}

/** The union of two sets, as a server merges them. A path that either owns as a whole stays listed. */
export function unionFields(a: FieldsV1, b: FieldsV1): FieldsV1 {
  const union: Record<string, Json | undefined> = { ...a };
  for (const [key, theirs] of Object.entries(b)) {
    const ours = a[key];
    union[key] = isJsonObject(ours) && isJsonObject(theirs) ? unionNodes(ours, theirs) : theirs;
  }
  return union;
}

/** `{}` owns the path. With children, the path needs a `.`, or its own ownership is lost. */
function unionNodes(a: FieldsV1, b: FieldsV1): FieldsV1 {
  const union = unionFields(a, b);
  const oneIsLeaf = Object.keys(a).length === 0 || Object.keys(b).length === 0;
  return oneIsLeaf && Object.keys(union).length > 0 ? { ".": {}, ...union } : union;
}
