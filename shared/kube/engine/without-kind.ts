import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { PrunedObject } from "#shared/kube/engine/pruned-object.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { isBuiltinGroup, type ObjectId } from "#shared/kube/object-id.ts";

/**
 * Decides about an object whose kind is not served: the definition is gone, or temporarily not served. The objects are
 * gone only if no definition exists (kustomize-controller#90).
 */
export async function withoutKind(client: ClusterClient, id: ObjectId): Promise<PrunedObject> {
  if (isBuiltinGroup(id.group)) return { id, outcome: "absent" };
  const definitions = await client.lookup({ group: "apiextensions.k8s.io", kind: "CustomResourceDefinition" });
  if (definitions.outcome !== "found")
    return { id, outcome: "waiting", message: "waits until CustomResourceDefinitions can be read" };
  const defining = await client.list(definitions.info, {
    keep: (item) => stringAt(item, "spec", "group") === id.group && stringAt(item, "spec", "names", "kind") === id.kind,
  });
  if (defining.length === 0) return { id, outcome: "absent" };
  return { id, outcome: "waiting", message: `${id.kind} is defined, but not served at the moment` };
}
