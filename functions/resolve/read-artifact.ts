import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { errorCode } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore } from "#shared/ports.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";

const gone: ReadonlySet<string> = new Set(["BlobNotFound", "ArtifactInvalid"]);

/** The files of a stored artifact; undefined when it is missing or damaged. */
export async function readArtifact(
  digest: string,
  blobs: Pick<BlobStore, "get">,
): Promise<readonly ListedFile[] | undefined> {
  try {
    return await unpackArtifact(await blobs.get(blobKeys.artifact(digest)), digest);
  } catch (error) {
    if (gone.has(errorCode(error))) return undefined;
    throw error;
  }
}
