import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import type { PrunedObject } from "#shared/kube/engine/pruned-object.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/**
 * A kind that is not served: gone with its definition, or not served for the moment. Only a definition that is really
 * not there means that its objects are not (kustomize-controller#90).
 */
export async function withoutKind(client: ClusterClient, id: ObjectId): Promise<PrunedObject> {
  if (isBuiltinGroup(id.group)) return { id, outcome: "absent" };
  const definitions = await client.lookup({ group: "apiextensions.k8s.io", kind: "CustomResourceDefinition" });
  if (definitions.outcome !== "found") return { id, outcome: "waiting", message: "definitions cannot be read" };
  const defining = await client.list(definitions.info, {
    keep: (item) => stringAt(item, "spec", "group") === id.group && stringAt(item, "spec", "names", "kind") === id.kind,
  });
  if (defining.length === 0) return { id, outcome: "absent" };
  return { id, outcome: "waiting", message: `${id.kind} is defined and not served at the moment` };
}
