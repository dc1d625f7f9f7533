import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import { ownedDigests } from "#shared/kube/field-set.ts";
import type { Health } from "#shared/kube/health/status.ts";
import { isCompleteJob } from "#shared/kube/health/workload-rules.ts";
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
export function expiringPart(object: ManifestObject): Pick<InventoryEntry, "expiring" | "ttlSeconds"> {
  const ttlSeconds = object.kind === "Job" ? valueAt(object, "spec", "ttlSecondsAfterFinished") : undefined;
  return typeof ttlSeconds === "number" ? { expiring: digestOf(object), ttlSeconds } : {};
}

/** The same of one that has done its work, for as long as it is there to be seen. */
export function completePart(entry: InventoryEntry, live: KubeObject): Pick<InventoryEntry, "complete"> {
  return entry.expiring !== undefined && isCompleteJob(live) ? { complete: true } : {};
}

/** Of a Job for which `hasRemovedItself` holds. */
export const removedItself: Health = { status: "Current", message: "Job has finished and removed itself" };

/** Clocks of a cluster and of a worker differ by so much at most. */
const clockSkewMs = 60_000;

/**
 * Whether a Job that is gone has done its work and removed itself: it was seen complete, or the time after which it
 * removes itself can have passed since it was made. Else somebody deleted it, and nobody knows what it has done.
 */
export function hasRemovedItself({ expiring, ttlSeconds, complete, createdAt }: InventoryEntry, now: Date): boolean {
  if (expiring === undefined) return false;
  // What older versions recorded, or what was recorded again after a loss, says neither: it is believed.
  if (complete === true || ttlSeconds === undefined || createdAt === undefined) return true;
  return Date.parse(createdAt) + ttlSeconds * 1000 <= now.getTime() + clockSkewMs;
}
