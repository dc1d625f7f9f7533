/**
 * Marks on objects that control how they are applied: Flux's marks, and Starling's own mark for objects that are only
 * created. They are labels or annotations, and the case of their values does not matter.
 */
import { type KubeObject, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";

export const applyMark = "starling.dev/apply";
const reconcileMark = "kustomize.toolkit.fluxcd.io/reconcile";
const ssaMark = "kustomize.toolkit.fluxcd.io/ssa";
const places = ["labels", "annotations"] as const;

/** In git: the object is created when it is missing, and otherwise stays as it is. */
export function isOnlyMade(object: ManifestObject): boolean {
  return says(object, ssaMark, "ifnotpresent") || says(object, applyMark, "ifnotpresent");
}

/** In git or in the cluster: Starling neither creates nor changes the object. */
export function isLeftAlone(object: KubeObject): boolean {
  return says(object, reconcileMark, "disabled") || says(object, ssaMark, "ignore");
}

/** In git or in the cluster: fields that only kubectl owns stay kubectl's. */
export function isShared(object: KubeObject): boolean {
  return says(object, ssaMark, "merge");
}

function says(object: KubeObject, name: string, value: string): boolean {
  return places.some((place) => stringAt(object, "metadata", place, name)?.trim().toLowerCase() === value);
}
