import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { errorCode } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore } from "#shared/ports.ts";

const gone: ReadonlySet<string> = new Set(["BlobNotFound", "ArtifactInvalid"]);

/** Whether an artifact is gone from the storage, or not what it was. */
export async function isLost(digest: string, blobs: BlobStore): Promise<boolean> {
  try {
    await unpackArtifact(await blobs.get(blobKeys.artifact(digest)), digest);
    return false;
  } catch (error) {
    if (gone.has(errorCode(error))) return true;
    throw error;
  }
}
