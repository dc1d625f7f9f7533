import type { Json } from "#shared/base/json.ts";
import { type FieldsV1, unionFields } from "#shared/kube/field-set.ts";
import {
  annotationsOf,
  fieldManager,
  type KubeObject,
  type ManagedFieldsEntry,
  managedFieldsOf,
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
