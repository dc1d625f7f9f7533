import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";

/** @param what - of which the bytes are. @throws StarlingError `ArchiveInvalid` */
export async function unpackUpstream(bytes: Uint8Array, what: string): Promise<readonly ListedFile[]> {
  return readTarGz(bytes, { folders: "passed over" }).catch((error: unknown) => {
    throw upstreamError("ArchiveInvalid", `${what} is no tar.gz that Starling reads: ${errorMessage(error)}`, error);
  });
}
