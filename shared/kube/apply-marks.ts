/**
 * Marks on objects that say how they are applied: Flux's, and Starling's own for what is only made. Labels or annotations,
 * in whatever case their values are.
 */
import { type KubeObject, type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";

export const applyMark = "starling.dev/apply";
const reconcileMark = "kustomize.toolkit.fluxcd.io/reconcile";
const ssaMark = "kustomize.toolkit.fluxcd.io/ssa";
const places = ["labels", "annotations"] as const;

/** In git: it is made where it is not there, and otherwise left as it is. */
export function isOnlyMade(object: ManifestObject): boolean {
  return says(object, ssaMark, "ifnotpresent") || says(object, applyMark, "ifnotpresent");
}

/** In git or in the cluster: it is neither made nor changed. */
export function isLeftAlone(object: KubeObject): boolean {
  return says(object, reconcileMark, "disabled") || says(object, ssaMark, "ignore");
}

/** In git or in the cluster: fields that only kubectl has stay its own. */
export function isShared(object: KubeObject): boolean {
  return says(object, ssaMark, "merge");
}

function says(object: KubeObject, name: string, value: string): boolean {
  return places.some((place) => stringAt(object, "metadata", place, name)?.trim().toLowerCase() === value);
}
