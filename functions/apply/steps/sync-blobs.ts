/** Renderings and inventories: immutable blobs named by their digest; every reader verifies the digest. */
import { LRUCache } from "lru-cache";
import type { OperationContext } from "#functions/apply/steps/operation.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { sha256 } from "#shared/base/digest.ts";
import { StarlingError, unlessLost } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory, type Inventory, readInventory, writeInventory } from "#shared/kube/inventory.ts";
import type { BlobStore } from "#shared/ports.ts";
import { decodeRendering, type Rendering } from "#shared/source/rendering.ts";

/**
 * Bytes of rendering text in memory; parsed, it takes about four times as much. Clusters with equal inputs share
 * renderings.
 */
const cachedRenderingBytes = 24 * 1024 * 1024;
/** Entries of half a kilobyte each. Every operation on a Sync reads its inventory. */
const cachedEntries = 100_000;

interface BlobCache {
  readonly renderings: LRUCache<string, Rendering>;
  readonly inventories: LRUCache<string, Inventory>;
}

const caches = new WeakMap<BlobStore, BlobCache>();

function cacheOf(blobs: BlobStore): BlobCache {
  const cache = caches.get(blobs) ?? {
    renderings: new LRUCache<string, Rendering>({ maxSize: cachedRenderingBytes }),
    inventories: new LRUCache<string, Inventory>({
      maxSize: cachedEntries,
      sizeCalculation: ({ entries }) => Math.max(1, entries.length),
    }),
  };
  caches.set(blobs, cache);
  return cache;
}

/** @throws StarlingError `RenderingLost`: the planner has it rendered again. */
export async function loadRendering(digest: string, blobs: BlobStore): Promise<Rendering> {
  const { renderings } = cacheOf(blobs);
  const cached = renderings.get(digest);
  if (cached !== undefined) return cached;
  const text = await unlessLost(storedText(blobs, blobKeys.rendering(digest), blobKeys.rendering), (lost) => {
    throw renderingLost(digest, lost);
  });
  const value = decodeRendering(text);
  renderings.set(digest, value, { size: text.length });
  return value;
}

function renderingLost(digest: string, cause: StarlingError): StarlingError {
  const message = `the rendering ${digest} is lost (${cause.message}); it is rendered again from the artifact`;
  return new StarlingError(message, { code: "RenderingLost", retry: "transient", data: { digest }, cause });
}

/** @returns undefined when the rendering is lost. */
export async function findRendering(digest: string, blobs: BlobStore): Promise<Rendering | undefined> {
  try {
    return await loadRendering(digest, blobs);
  } catch (error) {
    if (error instanceof StarlingError && error.code === "RenderingLost") return undefined;
    throw error;
  }
}

/**
 * The stored inventory, or an empty one when none was ever stored. An inventory that cannot be read never counts as
 * empty.
 * @throws StarlingError `BlobNotFound`, `BlobCorrupt`
 */
export async function loadInventory(row: SyncRow, setId: string, blobs: BlobStore): Promise<Inventory> {
  const digest = row.observed?.inventory;
  if (digest === undefined) return emptyInventory(setId);
  const keyOf = (found: string) => blobKeys.inventory(row.cluster, found);
  const key = keyOf(digest);
  const { inventories } = cacheOf(blobs);
  const cached = inventories.get(key);
  if (cached?.setId === setId) return cached;
  const value = readInventory(await storedText(blobs, key, keyOf), setId);
  inventories.set(key, value);
  return value;
}

/** @returns its digest for the row, when it differs from the row's. */
export async function saveInventory(
  context: Pick<OperationContext, "row" | "ports">,
  inventory: Inventory,
): Promise<string | undefined> {
  const { row, ports } = context;
  const text = writeInventory(inventory);
  const digest = sha256(text);
  if (digest === row.observed?.inventory) return undefined;
  const key = blobKeys.inventory(row.cluster, digest);
  // The stored blob may have been changed, so it is overwritten.
  await ports.blobs.overwrite(key, Buffer.from(text));
  cacheOf(ports.blobs).inventories.set(key, inventory);
  return digest;
}
