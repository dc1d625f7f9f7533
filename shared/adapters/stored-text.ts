import { sha256 } from "#shared/base/digest.ts";
import { StarlingError, unlessLost } from "#shared/base/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/**
 * A text that is stored under a key with its digest. A missing or different text is read a second time, because undoing
 * the effects of a loss takes longer than a moment.
 * @param keyOf - the key of a text with this digest.
 * @throws StarlingError `BlobNotFound`, `BlobCorrupt` when the text has changed.
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
  throw new StarlingError(`blob ${key} does not match the digest in its name: it was changed after it was written`, {
    code: "BlobCorrupt",
    retry: "permanent",
    data: { key },
  });
}
