import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Clock } from "#shared/base/clock.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { BlobStore, GitRemote, GitRepository } from "#shared/ports.ts";
import { folderDigests } from "#shared/source/folder-digests.ts";
import { chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const maxSubjectLength = 200;
const maxAuthorLength = 200;

export interface ArtifactRequest {
  readonly row: SourceRow;
  readonly repository: GitRepository;
  readonly commit: string;
  readonly revision: string;
}

interface FetchPorts {
  readonly git: GitRemote;
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/**
 * Fetches the Source's part of the commit and stores it once for each content: two commits with equal files share an artifact.
 * @throws StarlingError `PathNotFound` when one of the Source's paths is not in the commit, or an error of git.
 */
export async function fetchArtifact(request: ArtifactRequest, ports: FetchPorts): Promise<Artifact> {
  const { row, revision } = request;
  const { commit, files } = await fetchPart(request, ports);
  const charts = chartFolders(files);
  const about = {
    revision,
    ...(charts.length === 0 ? {} : { charts }),
    folders: folderDigests(files),
    subject: excerpt(commit.subject, maxSubjectLength),
    author: excerpt(`${commit.authorName} <${commit.authorEmail}>`, maxAuthorLength),
    committedAt: commit.committedAt,
  };
  const digest = treeDigest(files);
  const { artifact: known, lost } = row.status;
  if (known?.digest === digest && lost !== digest) return { ...known, ...about };
  const sizeBytes = await storeArtifact(digest, files, ports.blobs);
  return { ...about, digest, sizeBytes, files: files.length, storedAt: ports.clock.now().toISOString() };
}

/**
 * Fetches and stores an artifact that the Source had at another revision than now.
 * @throws StarlingError `ArtifactGone` when the commit has other files there now, or an error of `fetchArtifact`.
 */
export async function fetchFormer(request: ArtifactRequest, digest: string, ports: FetchPorts): Promise<void> {
  const { files } = await fetchPart(request, ports);
  const found = treeDigest(files);
  if (found !== digest) {
    const message = `the files of ${request.revision} in spec.paths are ${found}, and were ${digest}: spec.paths was another then`;
    throw new StarlingError(message, { code: "ArtifactGone", retry: "permanent", data: { found, digest } });
  }
  await storeArtifact(digest, files, ports.blobs);
}

async function fetchPart({ row, repository, commit: oid }: ArtifactRequest, { git }: FetchPorts) {
  const { paths } = row.spec;
  const fetched = await git.fetchTree(repository, { oid, paths });
  for (const path of paths) {
    if (fetched.files.some((file) => isWithin(file.path, [path]))) continue;
    throw new StarlingError(
      `commit ${oid} of ${repository.url} has no files in "${path}"; correct spec.paths, or push them`,
      { code: "PathNotFound", retry: "permanent", data: { path } },
    );
  }
  return fetched;
}

/** Overwrites the stored artifact, which may be old or damaged. @returns its size in bytes. */
async function storeArtifact(digest: string, files: readonly ListedFile[], blobs: BlobStore): Promise<number> {
  const archive = await packArtifact(files);
  await blobs.overwrite(blobKeys.artifact(digest), archive);
  return archive.length;
}
