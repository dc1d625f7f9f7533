import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Clock } from "#shared/base/clock.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { BlobStore, GitRemote, GitRepository } from "#shared/ports.ts";
import { chartFolders } from "#shared/source/helm/chart.ts";
import { isWithin, treeDigest } from "#shared/source/tree-listing.ts";

const maxSubjectLength = 200;
const maxAuthorLength = 200;

export interface ArtifactRequest {
  readonly row: SourceRow;
  readonly repository: GitRepository;
  readonly commit: string;
  readonly revision: string;
}

/**
 * Fetches the commit's part and stores it, once per content: another commit with the same files is the same artifact.
 * One that was lost is stored over whatever is there.
 * @throws StarlingError `PathNotFound` when one of the Source's paths is not in the commit, or what git says.
 */
export async function fetchArtifact(
  request: ArtifactRequest,
  ports: { readonly git: GitRemote; readonly blobs: BlobStore; readonly clock: Clock },
): Promise<Artifact> {
  const { row, repository, commit: oid, revision } = request;
  const { paths } = row.spec;
  const { commit, files } = await ports.git.fetchTree(repository, { oid, paths });
  for (const path of paths) {
    if (files.some((file) => isWithin(file.path, [path]))) continue;
    throw new StarlingError(
      `commit ${oid} of ${repository.url} has no files in "${path}"; correct spec.paths, or push them`,
      { code: "PathNotFound", retry: "permanent", data: { path } },
    );
  }
  const charts = chartFolders(files);
  const about = {
    revision,
    ...(charts.length === 0 ? {} : { charts }),
    subject: excerpt(commit.subject, maxSubjectLength),
    author: excerpt(`${commit.authorName} <${commit.authorEmail}>`, maxAuthorLength),
  };
  const digest = treeDigest(files);
  const { artifact: known, lost } = row.status;
  if (known?.digest === digest && lost !== digest) return { ...known, ...about };
  const archive = await packArtifact(files);
  const key = blobKeys.artifact(digest);
  await (lost === digest ? ports.blobs.overwrite(key, archive) : ports.blobs.putOnce(key, archive));
  return {
    ...about,
    digest,
    sizeBytes: archive.length,
    files: files.length,
    storedAt: ports.clock.now().toISOString(),
  };
}
