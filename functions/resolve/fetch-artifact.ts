import { composed, readIncluded } from "#functions/resolve/included.ts";
import { readArtifact } from "#functions/resolve/read-artifact.ts";
import type { Fetched, Located } from "#functions/resolve/upstreams/upstream.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { addressOf, folderFor } from "#shared/fleet/kinds/source.ts";
import type { Artifact, IncludedArtifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { movedTag } from "#shared/fleet/sources/followed-tags.ts";
import { madeFrom } from "#shared/fleet/sources/pinned-revision.ts";
import type { BlobStore, MessageSender } from "#shared/ports.ts";
import { folderDigests } from "#shared/source/folder-digests.ts";
import { chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const maxSubjectLength = 200;
const maxAuthorLength = 200;

interface StorePorts {
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly clock: Clock;
}

/** An artifact is made of these. */
interface Parts {
  readonly located: Located;
  readonly included: readonly IncludedArtifact[];
}

/**
 * Fetches the Source's part of the revision, adds what the Source includes, and stores it once for each content: two
 * revisions with equal files share an artifact.
 * @throws StarlingError `PathNotFound` when one of the Source's paths is not in the revision, or an error of the upstream
 *   or of `readIncluded` and `composed`.
 */
export async function fetchArtifact(row: SourceRow, parts: Parts, ports: StorePorts): Promise<Artifact> {
  const { located, included } = parts;
  const placed = await readIncluded(row, included, ports);
  const fetched = (await ownPart(row, located, ports.blobs)) ?? (await fetchPart(row, located));
  const { revision = located.revision, title, author, committedAt, verified } = fetched;
  const files = composed(fetched.files, placed);
  const charts = chartFolders(files);
  const about = {
    revision,
    madeFrom: madeFrom(row.spec, revision, included),
    origin: fetched.origin ?? addressOf(row.spec),
    ...(charts.length === 0 ? {} : { charts }),
    folders: folderDigests(files),
    subject: excerpt(title, maxSubjectLength),
    author: excerpt(author, maxAuthorLength),
    ...defined({
      committedAt,
      verified: verified === undefined ? undefined : { at: ports.clock.now().toISOString(), ...verified },
      included: included.length === 0 ? undefined : included,
      movedFrom: movedTag(row, located.revision)?.before,
    }),
  };
  const digest = treeDigest(files);
  const { artifact: known, lost } = row.status;
  if (known?.digest === digest && lost !== digest) {
    const { committedAt: _committedAt, charts: _charts, verified: _verified, ...rest } = known;
    const { movedFrom: _movedFrom, included: _included, ...kept } = rest;
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
  { located, included, digest }: Parts & { readonly digest: string },
  ports: Omit<StorePorts, "clock">,
): Promise<void> {
  const placed = await readIncluded(row, included, ports);
  const { files: own } = await fetchPart(row, located);
  const files = composed(own, placed);
  const found = treeDigest(files);
  if (found !== digest) {
    const message = `the files of ${located.revision} in spec.paths are ${found}, and were ${digest}: spec.paths was another then`;
    throw new StarlingError(message, { code: "ArtifactGone", retry: "permanent", data: { found, digest } });
  }
  await storeArtifact(digest, files, ports.blobs);
}

/**
 * The Source's own files out of its present artifact, while only what it includes has changed: the upstream may have them
 * no longer, such as an upload. Undefined when they have to be fetched.
 */
async function ownPart(
  { spec, status }: SourceRow,
  { revision, tag, isSignedApart }: Located,
  blobs: BlobStore,
): Promise<Fetched | undefined> {
  const { artifact, lost } = status;
  const isOpen = tag !== undefined || isSignedApart === true;
  if (artifact === undefined || artifact.revision !== revision || artifact.digest === lost || isOpen) return undefined;
  const { included = [], subject: title, author, committedAt, origin, verified } = artifact;
  if (spec.include === undefined && artifact.included === undefined) return undefined;
  const { include: _include, ...rest } = spec;
  const include = included.map(({ revision: _revision, digest: _digest, ...inclusion }) => inclusion);
  const before = include.length === 0 ? rest : { ...rest, include };
  if (artifact.madeFrom !== madeFrom(before, revision, included)) return undefined;
  const all = await readArtifact(artifact.digest, blobs);
  if (all === undefined) return undefined;
  const places = included.map(folderFor);
  const files = all.filter(({ path }) => !isWithin(path, places));
  return { files, title, author, ...defined({ committedAt, origin, verified }) };
}

async function fetchPart({ spec: { paths, ignore } }: SourceRow, { what, fetch }: Located): Promise<Fetched> {
  const fetched = await fetch({ paths, ignore });
  for (const path of paths) {
    if (fetched.files.some((file) => isWithin(file.path, [path]))) continue;
    const ignored = ignore === undefined ? "" : " that spec.ignore leaves in the artifact";
    throw new StarlingError(`${what} has no files in "${path}"${ignored}; correct spec.paths, or add the files`, {
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
