import { sha256 } from "#shared/base/digest.ts";
import { StarlingError, unlessLost } from "#shared/base/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/**
 * A text that was stored under a key which names its digest. One that is not there, or is another, is read once more:
 * what follows from a loss takes more than a moment to undo.
 * @param keyOf - the key of a text with this digest.
 * @throws StarlingError `BlobNotFound`, `BlobCorrupt` when it is something else by now.
 */
export async function storedText(
  blobs: Pick<BlobStore, "get">,
  key: string,
  keyOf: (digest: string) => string,
): Promise<string> {
  return unlessLost(readOnce(blobs, key, keyOf), () => readOnce(blobs, key, keyOf));
}

async function readOnce(
  blobs: Pick<BlobStore, "get">,
  key: string,
  keyOf: (digest: string) => string,
): Promise<string> {
  const bytes = await blobs.get(key);
  if (keyOf(sha256(bytes)) === key) return Buffer.from(bytes).toString("utf8");
  throw new StarlingError(`blob ${key} is not what its name says: it was changed after it was written`, {
    code: "BlobCorrupt",
    retry: "permanent",
    data: { key },
  });
}
