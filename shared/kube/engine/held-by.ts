import { foreignList } from "#shared/base/foreign-text.ts";
import { type KubeObject, listAt } from "#shared/kube/kube-object.ts";

const maxNamed = 3;

/** Says that an object is being deleted, and which finalizers hold it. */
export function beingDeleted(live: KubeObject): string {
  return `it is being deleted${heldBy(live)}`;
}

/** `, held by a, b`: the finalizers that an object's deletion waits for; empty when there are none. */
export function heldBy(live: KubeObject): string {
  const finalizers = listAt(live, "metadata", "finalizers").filter((name) => typeof name === "string");
  return finalizers.length === 0 ? "" : `, held by ${foreignList(finalizers, maxNamed)}`;
}
