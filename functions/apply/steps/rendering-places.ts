/** The places where objects of renderings may be: of those that stay, and of those that an earlier attempt may have left. */

import { appliedEvent } from "#functions/apply/steps/order-of-apply.ts";
import { findRendering, loadRendering } from "#functions/apply/steps/sync-blobs.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import type { BlobStore } from "#shared/ports.ts";
import { everyObject } from "#shared/source/rendering.ts";

/** `objectIdKey` of every place where an object of the rendering may be. */
export function placesIn(
  rendering: readonly ManifestObject[],
  defaultNamespace: string | undefined,
): ReadonlySet<string> {
  return new Set(rendering.flatMap((object) => placesOf(objectIdOf(object), defaultNamespace).map(objectIdKey)));
}

/** The part of an inventory that is desired: all of it, except what `prune: false` keeps and nobody desires. */
export async function desiredPart(
  row: Pick<SyncRow, "desired" | "observed">,
  inventory: Inventory,
  blobs: BlobStore,
): Promise<Inventory> {
  const { apply, renderDigest } = row.desired;
  if (apply.prune || renderDigest === undefined) return inventory;
  const rendering = await loadRendering(renderDigest, blobs);
  const places = placesIn(rendering[appliedEvent(row, renderDigest)], apply.defaultNamespace);
  return { ...inventory, entries: inventory.entries.filter((entry) => places.has(objectIdKey(entry.id))) };
}

interface Unrecorded {
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
