import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { annotationsOf, type KubeObject, labelsOf, listAt, ownApplyEntry, valueAt } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** An object that has the Sync's label in the cluster and is in no inventory. */
export interface ForeignObject {
  readonly id: ObjectId;
  readonly uid: string;
  /**
   * Whether it proves to be a member: Starling applied it, and no controller owns it. Other objects only have a copy of
   * the label.
   */
  readonly member: boolean;
  /** Why it is not deleted: a mark forbids it, or the object is never deleted. */
  readonly keep?: string;
}

/**
 * The label of KEP-3659 by which a set's members are listed. Controllers copy labels, so that it proves nothing alone.
 */
export const partOfLabel = "applyset.kubernetes.io/part-of";
/** The label of KEP-3659 on the parent of a set. */
export const parentLabel = "applyset.kubernetes.io/id";

/**
 * Whether a live object is a member of a set: it has the set's label, its managedFields record Starling's own apply,
 * and no controller owns it. All three are necessary, because operators copy labels to children, the control plane
 * copies them to EndpointSlices, and people copy them with `kubectl` (argo-cd#10456, kustomize-controller#192).
 */
export function isMember(object: KubeObject, setId: string): boolean {
  return labelsOf(object)[partOfLabel] === setId && ownApplyEntry(object) !== undefined && !hasController(object);
}

/** Children belong to their controller. They are never members, and are never pruned. */
export function hasController(object: KubeObject): boolean {
  return listAt(object, "metadata", "ownerReferences").some(
    (owner) => isJsonObject(owner) && owner.controller === true,
  );
}

/** Tools whose marks claim an object. */
export type ForeignTool = "applyset" | "argocd" | "cli-utils" | "fleet" | "flux" | "helm" | "kapp" | "kluctl";

export interface ForeignOwner {
  readonly tool: ForeignTool;
  /** The value of the mark, bounded. It is enough to find the owner. */
  readonly owner: string;
  /** The label or annotation with the claim. */
  readonly mark: string;
}

const helmRelease = "meta.helm.sh/release-name";

/** Tools, the places of their marks, and the marks. The first existing mark names the owner. */
const marks: readonly (readonly [ForeignTool, "label" | "annotation", string])[] = [
  ["flux", "label", "kustomize.toolkit.fluxcd.io/name"],
  ["flux", "label", "helm.toolkit.fluxcd.io/name"],
  ["argocd", "annotation", "argocd.argoproj.io/tracking-id"],
  ["argocd", "label", "argocd.argoproj.io/instance"],
  ["kapp", "label", "kapp.k14s.io/app"],
  ["cli-utils", "annotation", "config.k8s.io/owning-inventory"],
  ["fleet", "annotation", "objectset.rio.cattle.io/id"],
  ["kluctl", "label", "kluctl.io/discriminator"],
];

/**
 * The other tool, or the other set of Starling, whose mark a live object has; undefined for an object without such a
 * mark. A member belongs to its set until someone else marks it: marks that Starling applied come from the rendering.
 * The parent of a set belongs to that set. `managed-by: Helm` alone is in every rendered chart; only Helm itself writes
 * the release's name.
 */
export function foreignOwner(object: KubeObject, setId: string): ForeignOwner | undefined {
  const isOurs = isMember(object, setId) ? appliedMarks(object) : () => false;
  const labels = withoutOurs(labelsOf(object), (name) => isOurs("f:labels", name));
  const annotations = withoutOurs(annotationsOf(object), (name) => isOurs("f:annotations", name));
  // A parent in a rendering would overwrite what the cluster remembers of a Sync, and would later be pruned.
  const parentOf = labels[parentLabel];
  if (parentOf !== undefined) return { tool: "applyset", owner: bounded(parentOf), mark: `label ${parentLabel}` };
  const set = labels[partOfLabel];
  if (set !== undefined && set !== setId)
    return { tool: "applyset", owner: bounded(set), mark: `label ${partOfLabel}` };
  for (const [tool, place, name] of marks) {
    const value = (place === "label" ? labels : annotations)[name];
    if (value !== undefined) return { tool, owner: bounded(value), mark: `${place} ${name}` };
  }
  const release = annotations[helmRelease];
  if (release !== undefined && labelsOf(object)["app.kubernetes.io/managed-by"] === "Helm") {
    return { tool: "helm", owner: bounded(release), mark: `annotation ${helmRelease}` };
  }
  return undefined;
}

/** @returns whether Starling's own apply owns a label or an annotation. */
function appliedMarks(object: KubeObject): (place: "f:labels" | "f:annotations", name: string) => boolean {
  const fields = ownApplyEntry(object)?.fieldsV1;
  return (place, name) => valueAt(fields, "f:metadata", place, `f:${name}`) !== undefined;
}

function withoutOurs(
  texts: Readonly<Record<string, string>>,
  isOurs: (name: string) => boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(texts).filter(([name]) => !isOurs(name)));
}

function bounded(text: string): string {
  return foreignText(text, 120);
}

/** The keys of the marks, and the values (in lower case) that forbid a deletion. */
const keepMarks: readonly (readonly [string, readonly string[]])[] = [
  ["starling.dev/prune", ["disabled", "false"]],
  ["kustomize.toolkit.fluxcd.io/prune", ["disabled"]],
  ["kustomize.toolkit.fluxcd.io/reconcile", ["disabled"]],
  ["kustomize.toolkit.fluxcd.io/ssa", ["ignore"]],
  ["helm.sh/resource-policy", ["keep"]],
  ["client.lifecycle.config.k8s.io/deletion", ["detach"]],
  ["cli-utils.sigs.k8s.io/on-remove", ["keep"]],
  ["kapp.k14s.io/delete-strategy", ["orphan"]],
  ["kluctl.io/skip-delete", ["true"]],
];

const keepSyncOptions = new Set(["prune=false", "delete=false", "prune=confirm", "delete=confirm"]);

/**
 * The mark, as `name: value`, with which a live object forbids its deletion; undefined when the object may be deleted.
 * Only the live object counts: a mark in git that was never applied protects nothing. Marks of other tools are
 * followed, because users bring them along when they migrate.
 */
export function keepMark(object: KubeObject): string | undefined {
  // Labels and annotations both count, as in an apply. A label does not cancel an annotation.
  for (const texts of [labelsOf(object), annotationsOf(object)]) {
    for (const [name, values] of keepMarks) {
      const value = texts[name];
      if (value !== undefined && values.includes(value.trim().toLowerCase())) return `${name}: ${bounded(value)}`;
    }
    const name = "argocd.argoproj.io/sync-options";
    for (const option of (texts[name] ?? "").split(",")) {
      if (keepSyncOptions.has(option.trim().toLowerCase())) return `${name}: ${bounded(option)}`;
    }
  }
  return undefined;
}
