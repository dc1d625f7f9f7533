import type { SourcePart } from "#functions/resolve/upstreams/upstream.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { IgnoreError } from "#shared/source/ignore-pattern.ts";
import { ignoreRoot, withoutIgnored } from "#shared/source/ignore-rules.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";

/** @param what - of which the bytes are. @throws StarlingError `ArchiveInvalid` */
export async function unpackUpstream(bytes: Uint8Array, what: string): Promise<readonly ListedFile[]> {
  return readTarGz(bytes, { folders: "passed over" }).catch((error: unknown) => {
    throw upstreamError("ArchiveInvalid", `${what} is no tar.gz that Starling reads: ${errorMessage(error)}`, error);
  });
}

/**
 * The files of an archive that a Source takes. The archive is what somebody packed on purpose, so that only patterns leave out files.
 * @throws StarlingError `ArchiveInvalid`
 */
export async function unpackPart(
  bytes: Uint8Array,
  what: string,
  { paths, ignore }: SourcePart,
): Promise<readonly ListedFile[]> {
  const files = await unpackUpstream(bytes, what);
  return ofPart(files, { what, hasDefaults: false, paths, ignore });
}

/** @throws StarlingError `ArchiveInvalid` for patterns that are refused. */
export function ofPart(
  files: readonly ListedFile[],
  { what, hasDefaults, paths, ignore }: SourcePart & { readonly what: string; readonly hasDefaults: boolean },
): readonly ListedFile[] {
  try {
    const kept = withoutIgnored(files, ignoreRoot(ignore, { hasDefaults }));
    return kept.filter(({ path }) => isWithin(path, paths));
  } catch (error) {
    if (!(error instanceof IgnoreError)) throw error;
    throw upstreamError("ArchiveInvalid", `${what}: ${error.message}; write fewer and shorter patterns`, error);
  }
}
