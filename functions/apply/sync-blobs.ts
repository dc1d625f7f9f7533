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

/** Renderings are shared by clusters with the same inputs; an inventory is read again at every look at its Sync. */
const CACHED_RENDERINGS = 16;
const CACHED_INVENTORIES = 1000;
/** A larger one, of about half a megabyte, is read from S3 each time. */
const CACHED_ENTRIES = 1000;

interface BlobCache {
  readonly renderings: Map<string, readonly ManifestObject[]>;
  readonly inventories: Map<string, Inventory>;
}

const caches = new WeakMap<BlobStore, BlobCache>();

function cacheOf(blobs: BlobStore): BlobCache {
  const cache = caches.get(blobs) ?? { renderings: new Map(), inventories: new Map() };
  caches.set(blobs, cache);
  return cache;
}

function remember<T>(cache: Map<string, T>, entry: { readonly key: string; readonly value: T }, most: number): T {
  const [oldest] = cache.keys();
  if (cache.size >= most && oldest !== undefined) cache.delete(oldest);
  cache.set(entry.key, entry.value);
  return entry.value;
}

function rememberInventory(
  cache: BlobCache["inventories"],
  entry: { readonly key: string; readonly value: Inventory },
): Inventory {
  return entry.value.entries.length > CACHED_ENTRIES ? entry.value : remember(cache, entry, CACHED_INVENTORIES);
}

/** @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
export async function loadRendering(digest: string, blobs: BlobStore): Promise<readonly ManifestObject[]> {
  const { renderings } = cacheOf(blobs);
  const cached = renderings.get(digest);
  if (cached !== undefined) return cached;
  const value = parseJson(await verified(blobKeys.rendering(digest), digest, blobs)) as unknown as ManifestObject[];
  return remember(renderings, { key: digest, value }, CACHED_RENDERINGS);
}

/** The stored inventory, or an empty one when there never was any; one that cannot be read is never an empty one. */
export async function loadInventory(row: SyncRow, setId: string, blobs: BlobStore): Promise<Inventory> {
  const digest = row.observed?.inventory;
  if (digest === undefined) return emptyInventory(setId);
  const key = blobKeys.inventory(row.cluster, digest);
  const { inventories } = cacheOf(blobs);
  const cached = inventories.get(key);
  if (cached?.setId === setId) return cached;
  const value = readInventory(await verified(key, digest, blobs), setId);
  return rememberInventory(inventories, { key, value });
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
  const key = blobKeys.inventory(row.cluster, digest);
  await ports.blobs.putOnce(key, Buffer.from(text));
  rememberInventory(cacheOf(ports.blobs).inventories, { key, value: inventory });
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
