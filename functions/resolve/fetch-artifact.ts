import type { Fetched, Located } from "#functions/resolve/upstreams/upstream.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { movedTag } from "#shared/fleet/sources/followed-tags.ts";
import { madeFrom } from "#shared/fleet/sources/pinned-revision.ts";
import type { BlobStore } from "#shared/ports.ts";
import { folderDigests } from "#shared/source/folder-digests.ts";
import { chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const maxSubjectLength = 200;
const maxAuthorLength = 200;

interface StorePorts {
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/**
 * Fetches the Source's part of the revision and stores it once for each content: two revisions with equal files share an
 * artifact.
 * @throws StarlingError `PathNotFound` when one of the Source's paths is not in the revision, or an error of the upstream.
 */
export async function fetchArtifact(row: SourceRow, located: Located, ports: StorePorts): Promise<Artifact> {
  const fetched = await fetchPart(row, located);
  const { revision = located.revision, files, title, author, committedAt, verified } = fetched;
  const charts = chartFolders(files);
  const about = {
    revision,
    madeFrom: madeFrom(row.spec, revision),
    origin: fetched.origin ?? addressOf(row.spec),
    ...(charts.length === 0 ? {} : { charts }),
    folders: folderDigests(files),
    subject: excerpt(title, maxSubjectLength),
    author: excerpt(author, maxAuthorLength),
    ...defined({
      committedAt,
      verified: verified === undefined ? undefined : { ...verified, at: ports.clock.now().toISOString() },
      movedFrom: movedTag(row, located.revision)?.before,
    }),
  };
  const digest = treeDigest(files);
  const { artifact: known, lost } = row.status;
  if (known?.digest === digest && lost !== digest) {
    const { committedAt: _committedAt, charts: _charts, verified: _verified, movedFrom: _movedFrom, ...kept } = known;
    return { ...kept, ...about };
  }
  const sizeBytes = await storeArtifact(digest, files, ports.blobs);
  return { ...about, digest, sizeBytes, files: files.length, storedAt: ports.clock.now().toISOString() };
}

/**
 * Fetches and stores an artifact that the Source had at another revision than now.
 * @throws StarlingError `ArtifactGone` when the revision has other files there now, or an error of `fetchArtifact`.
 */
export async function fetchFormer(
  row: SourceRow,
  { located, digest }: { readonly located: Located; readonly digest: string },
  blobs: BlobStore,
): Promise<void> {
  const { files } = await fetchPart(row, located);
  const found = treeDigest(files);
  if (found !== digest) {
    const message = `the files of ${located.revision} in spec.paths are ${found}, and were ${digest}: spec.paths was another then`;
    throw new StarlingError(message, { code: "ArtifactGone", retry: "permanent", data: { found, digest } });
  }
  await storeArtifact(digest, files, blobs);
}

async function fetchPart({ spec: { paths } }: SourceRow, { what, fetch }: Located): Promise<Fetched> {
  const fetched = await fetch(paths);
  for (const path of paths) {
    if (fetched.files.some((file) => isWithin(file.path, [path]))) continue;
    throw new StarlingError(`${what} has no files in "${path}"; correct spec.paths, or add the files`, {
      code: "PathNotFound",
      retry: "permanent",
      data: { path },
    });
  }
  return fetched;
}

/** Overwrites the stored artifact, which may be old or damaged. @returns its size in bytes. */
async function storeArtifact(digest: string, files: readonly ListedFile[], blobs: BlobStore): Promise<number> {
  const archive = await packArtifact(files);
  await blobs.overwrite(blobKeys.artifact(digest), archive);
  return archive.length;
}
