/** Renderings and inventories: immutable blobs named by their digest, verified by whoever reads them. */
import type { VerbContext } from "#functions/apply/verbs/verb.ts";
import { blobKeys } from "#shared/domain/blob-keys.ts";
import { sha256 } from "#shared/domain/digest.ts";
import { emptyInventory, type Inventory, readInventory, writeInventory } from "#shared/domain/inventory.ts";
import { parseJson } from "#shared/domain/json.ts";
import type { ManifestObject } from "#shared/domain/kube-object.ts";
import type { SyncRow } from "#shared/domain/rows/sync-row.ts";
import { StarlingError } from "#shared/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Renderings are shared by clusters with the same inputs, and one process works for many of them. */
const CACHED_RENDERINGS = 16;
const renderings = new WeakMap<BlobStore, Map<string, readonly ManifestObject[]>>();

/** @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
export async function loadRendering(digest: string, blobs: BlobStore): Promise<readonly ManifestObject[]> {
  const cache = renderings.get(blobs) ?? new Map<string, readonly ManifestObject[]>();
  renderings.set(blobs, cache);
  const cached = cache.get(digest);
  if (cached !== undefined) return cached;
  const objects = parseJson(await verified(blobKeys.rendering(digest), digest, blobs)) as unknown as ManifestObject[];
  const [oldest] = cache.keys();
  if (cache.size >= CACHED_RENDERINGS && oldest !== undefined) cache.delete(oldest);
  cache.set(digest, objects);
  return objects;
}

/** The stored inventory, or an empty one when there never was any; one that cannot be read is never an empty one. */
export async function loadInventory(row: SyncRow, setId: string, blobs: BlobStore): Promise<Inventory> {
  const digest = row.observed?.inventory;
  if (digest === undefined) return emptyInventory(setId);
  return readInventory(await verified(blobKeys.inventory(row.cluster, digest), digest, blobs), setId);
}

/** @returns its digest when it is another than the row has, for the row. */
export async function saveInventory(
  context: Pick<VerbContext, "row" | "ports">,
  inventory: Inventory,
): Promise<string | undefined> {
  const { row, ports } = context;
  const text = writeInventory(inventory);
  const digest = sha256(text);
  if (digest === row.observed?.inventory) return undefined;
  await ports.blobs.putOnce(blobKeys.inventory(row.cluster, digest), Buffer.from(text));
  return digest;
}

async function verified(key: string, digest: string, blobs: BlobStore): Promise<string> {
  const bytes = await blobs.get(key);
  if (sha256(bytes) === digest) return Buffer.from(bytes).toString("utf8");
  throw new StarlingError(`blob ${key} does not have the digest ${digest}: it was changed after it was written`, {
    code: "BlobCorrupt",
    retry: "permanent",
    data: { key },
  });
}
