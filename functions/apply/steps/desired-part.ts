import { appliedEvent } from "#functions/apply/steps/order-of-apply.ts";
import { loadRendering } from "#functions/apply/steps/sync-blobs.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import type { BlobStore } from "#shared/ports.ts";

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
