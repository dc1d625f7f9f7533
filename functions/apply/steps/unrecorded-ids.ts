import { findRendering } from "#functions/apply/steps/sync-blobs.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import type { BlobStore } from "#shared/ports.ts";
import { everyObject } from "#shared/source/rendering.ts";

export interface Unrecorded {
  readonly ids: readonly ObjectId[];
  /** Digests of lost renderings: nothing tells which objects they may have left. */
  readonly lost: readonly string[];
}

/**
 * Objects of renderings that were tried and whose inventory was never stored: a worker that died may have made them.
 * Objects that the inventory has are included, because they may have been made again with another uid.
 * @param attempted - digests of these renderings, as the parent object remembers them.
 * @param known.desired - `objectIdKey` of each object that stays.
 */
export async function unrecordedIds(
  attempted: readonly string[],
  known: { readonly desired: ReadonlySet<string>; readonly defaultNamespace: string | undefined },
  blobs: BlobStore,
): Promise<Unrecorded> {
  const ids = new Map<string, ObjectId>();
  const lost: string[] = [];
  for (const digest of attempted) {
    const rendering = await findRendering(digest, blobs);
    if (rendering === undefined) lost.push(digest);
    for (const object of rendering === undefined ? [] : everyObject(rendering)) {
      const places = placesOf(objectIdOf(object), known.defaultNamespace);
      if (places.some((id) => known.desired.has(objectIdKey(id)))) continue;
      for (const id of places) ids.set(objectIdKey(id), id);
    }
  }
  return { ids: [...ids.values()], lost };
}
