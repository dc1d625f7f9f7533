import { loadRendering } from "#functions/apply/sync-blobs.ts";
import type { Inventory } from "#shared/domain/inventory.ts";
import { objectIdOf } from "#shared/domain/kube-object.ts";
import { type ObjectId, objectIdKey, placesOf } from "#shared/domain/object-id.ts";
import type { BlobStore } from "#shared/ports.ts";

/**
 * Objects of renderings that were tried and whose inventory was never stored: a worker that died may have made them.
 * @param attempted - digests of these renderings, as the parent object remembers them.
 */
export async function unrecordedIds(
  attempted: readonly string[],
  known: { readonly inventory: Inventory; readonly defaultNamespace: string | undefined },
  blobs: BlobStore,
): Promise<readonly ObjectId[]> {
  const recorded = new Set(known.inventory.entries.map((entry) => objectIdKey(entry.id)));
  const ids = new Map<string, ObjectId>();
  for (const digest of attempted) {
    for (const object of await loadRendering(digest, blobs)) {
      const places = placesOf(objectIdOf(object), known.defaultNamespace);
      if (places.some((id) => recorded.has(objectIdKey(id)))) continue;
      for (const id of places) ids.set(objectIdKey(id), id);
    }
  }
  return [...ids.values()];
}
