import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import { ownedDigests } from "#shared/kube/field-set.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { generationOf, type KubeObject, type ManifestObject, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** The record of an object as it is in the cluster now. */
export function entryOf(
  live: KubeObject,
  { id, version }: { readonly id: ObjectId } & Pick<KindInfo, "version">,
): InventoryEntry {
  const digests = ownedDigests(live);
  return {
    id,
    version,
    uid: stringAt(live, "metadata", "uid") ?? "",
    resourceVersion: stringAt(live, "metadata", "resourceVersion") ?? "",
    generation: generationOf(live),
    ...defined({ createdAt: stringAt(live, "metadata", "creationTimestamp") }),
    ownedHash: digests?.ownedHash ?? "",
    valuesHash: digests?.valuesHash ?? "",
  };
}

/** For the record of a Job that removes itself when finished. @param object - as it is sent. */
export function expiringPart(object: ManifestObject): Pick<InventoryEntry, "expiring"> {
  const expires = object.kind === "Job" && typeof valueAt(object, "spec", "ttlSecondsAfterFinished") === "number";
  return expires ? { expiring: digestOf(object) } : {};
}
