import { storedText } from "#shared/adapters/stored-text.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore } from "#shared/ports.ts";

/** A list that is stored under a key with its digest. @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
export async function storedList<Item>(blobs: Pick<BlobStore, "get">, key: string): Promise<readonly Item[]> {
  return JSON.parse(await storedText(blobs, key, blobKeys.members));
}
