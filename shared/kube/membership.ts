import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { annotationsOf, type KubeObject, labelsOf, listAt, ownApplyEntry, valueAt } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** What carries the Sync's label in the cluster and is in no inventory. */
export interface ForeignObject {
  readonly id: ObjectId;
  readonly uid: string;
  /** It proves to be a member: Starling has applied it, and no controller owns it. Others only bear a copy of the label. */
  readonly member: boolean;
  /** It asks not to be deleted, or never may be: why. */
  readonly keep?: string;
}

/** The label of KEP-3659 by which a set's members are listed. Controllers copy labels: it proves nothing alone. */
export const partOfLabel = "applyset.kubernetes.io/part-of";
/** The label of KEP-3659 that the parent of a set carries. */
export const parentLabel = "applyset.kubernetes.io/id";

/**
 * Whether a live object is a member of a set: it carries the set's label, Starling's own apply is recorded in its
 * managedFields, and no controller owns it. All three, because labels are copied to children by operators, to
 * EndpointSlices by the control plane and by people with `kubectl` (argo-cd#10456, kustomize-controller#192).
 */
export function isMember(object: KubeObject, setId: string): boolean {
  return labelsOf(object)[partOfLabel] === setId && ownApplyEntry(object) !== undefined && !hasController(object);
}

/** Children are their controller's: never members, never pruned. */
export function hasController(object: KubeObject): boolean {
  return listAt(object, "metadata", "ownerReferences").some(
    (owner) => isJsonObject(owner) && owner.controller === true,
  );
}

/** Tools whose marks on an object say that it is theirs. */
export type ForeignTool = "applyset" | "argocd" | "cli-utils" | "fleet" | "flux" | "helm" | "kapp" | "kluctl";

export interface ForeignOwner {
  readonly tool: ForeignTool;
  /** What the mark says, bounded: enough to find the owner. */
  readonly owner: string;
  /** The label or annotation that says so. */
  readonly mark: string;
}

const helmRelease = "meta.helm.sh/release-name";

/** Legend: tool, where its mark is, the mark. The first that is there names the owner. */
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
 * The other tool, or the other set of Starling, that a live object belongs to by its marks; undefined for what nobody
 * marked. A member belongs to its set until somebody else has marked it: marks that Starling applied are the rendering's.
 * The parent of a set belongs to it. `managed-by: Helm` alone is in every rendered chart; only Helm itself writes the
 * release's name.
 */
export function foreignOwner(object: KubeObject, setId: string): ForeignOwner | undefined {
  const isOurs = isMember(object, setId) ? appliedMarks(object) : () => false;
  const labels = withoutOurs(labelsOf(object), (name) => isOurs("f:labels", name));
  const annotations = withoutOurs(annotationsOf(object), (name) => isOurs("f:annotations", name));
  // A parent in a rendering would overwrite what the cluster remembers of a Sync, and later be pruned.
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

/** @returns whether Starling's own apply holds a label or an annotation. */
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

/** Legend: where the mark is written on the live object, its name, the values (lower case) that mean "do not delete". */
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
 * The mark, as `name: value`, by which a live object asks not to be deleted; undefined when it may go. Only the live
 * object counts: a mark in git that was never applied protects nothing. Marks of other tools are honoured because
 * people bring them along when they migrate.
 */
export function keepMark(object: KubeObject): string | undefined {
  // Either may say it, as when an object is applied: a label takes nothing back that an annotation says.
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
