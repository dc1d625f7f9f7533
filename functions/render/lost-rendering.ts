import type { Clock } from "#shared/base/clock.ts";
import { sha256 } from "#shared/base/digest.ts";
import { errorCode } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { backoffSeconds, later } from "#shared/fleet/rows/due.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { RenderMessage } from "#shared/messages.ts";
import type { BlobStore } from "#shared/ports.ts";

/**
 * Whether what somebody did not find is really gone, or not what it was. Where it is lost again and again, it is looked
 * for with a back-off, however many clusters ask.
 */
export async function isLost(
  { state, digest, losses = 0, doneAt }: RenderingRow,
  { lost }: RenderMessage,
  ports: { readonly blobs: BlobStore; readonly clock: Clock },
): Promise<boolean> {
  if (state !== "Done" || digest === undefined || digest !== lost) return false;
  const isTooSoon = losses > 0 && ports.clock.now().toISOString() < later(doneAt ?? "", backoffSeconds(losses));
  return !isTooSoon && !(await isIntact(digest, ports.blobs));
}

async function isIntact(digest: string, blobs: BlobStore): Promise<boolean> {
  try {
    return sha256(await blobs.get(blobKeys.rendering(digest))) === digest;
  } catch (error) {
    if (errorCode(error) === "BlobNotFound") return false;
    throw error;
  }
}

/** One that was lost is stored over whatever is there. */
export async function storeRendering(
  { losses = 0 }: RenderingRow,
  made: { readonly digest: string; readonly bytes: Uint8Array },
  blobs: BlobStore,
): Promise<void> {
  const key = blobKeys.rendering(made.digest);
  await (losses > 0 ? blobs.overwrite(key, made.bytes) : blobs.putOnce(key, made.bytes));
}
