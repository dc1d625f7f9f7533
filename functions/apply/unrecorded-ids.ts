import { loadRendering } from "#functions/apply/sync-blobs.ts";
import type { Inventory } from "#shared/domain/inventory.ts";
import { objectIdOf } from "#shared/domain/kube-object.ts";
import { type ObjectId, objectIdKey } from "#shared/domain/object-id.ts";
import type { BlobStore } from "#shared/ports.ts";

/**
 * Objects of renderings that were tried and whose inventory was never stored: a worker that died may have made them.
 * @param attempted - digests of these renderings, as the parent object remembers them.
 */
export async function unrecordedIds(
  attempted: readonly string[],
  inventory: Inventory,
  blobs: BlobStore,
): Promise<readonly ObjectId[]> {
  const recorded = new Set(inventory.entries.map((entry) => objectIdKey(entry.id)));
  const ids = new Map<string, ObjectId>();
  for (const digest of attempted) {
    for (const object of await loadRendering(digest, blobs)) {
      const id = objectIdOf(object);
      if (!recorded.has(objectIdKey(id))) ids.set(objectIdKey(id), id);
    }
  }
  return [...ids.values()];
}
