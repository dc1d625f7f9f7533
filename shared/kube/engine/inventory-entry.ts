import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { KindInfo } from "#shared/kube/cluster-client.ts";
import type { Health } from "#shared/kube/health/status.ts";
import { isCompleteJob } from "#shared/kube/health/workload-rules.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import { generationOf, type KubeObject, type ManifestObject, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { ownedDigests } from "#shared/kube/managed-fields.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** The record of an object's live state. */
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

/** For the record of a Job that removes itself after its end. @param object - as it is sent. */
export function expiringPart(object: ManifestObject): Pick<InventoryEntry, "expiring" | "ttlSeconds"> {
  const ttlSeconds = object.kind === "Job" ? valueAt(object, "spec", "ttlSecondsAfterFinished") : undefined;
  return typeof ttlSeconds === "number" ? { expiring: digestOf(object), ttlSeconds } : {};
}

/** For such a Job when it is complete, as long as it can be seen. */
export function completePart(entry: InventoryEntry, live: KubeObject): Pick<InventoryEntry, "complete"> {
  return entry.expiring !== undefined && isCompleteJob(live) ? { complete: true } : {};
}

/** The health of a Job for which `hasRemovedItself` holds. */
export const removedItself: Health = { status: "Current", message: "Job has finished and removed itself" };

/** The most that the clocks of a cluster and a worker differ. */
const clockSkewMs = 60_000;

/**
 * Whether a missing Job completed and removed itself: it was seen complete, or the time after which it removes itself
 * may have passed since its creation. Otherwise someone deleted it, and its result is unknown.
 */
export function hasRemovedItself({ expiring, ttlSeconds, complete, createdAt }: InventoryEntry, now: Date): boolean {
  if (expiring === undefined) return false;
  // Older records, and records made again after a loss, contain neither. They count as complete.
  if (complete === true || ttlSeconds === undefined || createdAt === undefined) return true;
  return Date.parse(createdAt) + ttlSeconds * 1000 <= now.getTime() + clockSkewMs;
}
