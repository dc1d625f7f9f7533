import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Transfer } from "#shared/ports.ts";
import type { BuildJob } from "#shared/source/build-job.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";

type Asked = Pick<BuildJob, "artifactDigest" | "artifactUrl">;
type Files = readonly ListedFile[];

export interface ReadArtifacts {
  readonly files: Files;
  /** Files of each further artifact that values come from, by its digest. */
  readonly others: ReadonlyMap<string, Files>;
}

/**
 * The artifacts of a sandbox, read once. A sandbox serves one artifact and its companions, and a fleet asks it for a
 * thousand renderings. When jobs name different artifacts, as on one machine, only the artifacts of the last job are kept.
 */
export class LastArtifact {
  readonly #transfer: Transfer;
  readonly #files = new Map<string, Promise<Files>>();

  constructor(transfer: Transfer) {
    this.#transfer = transfer;
  }

  /** @throws StarlingError `TransferFailed` or `ArtifactInvalid`; the next call reads the artifact again. */
  async read({ besides = [], ...own }: Asked & Pick<BuildJob, "besides">): Promise<ReadArtifacts> {
    const desired = new Set([own, ...besides].map(({ artifactDigest }) => artifactDigest));
    for (const digest of this.#files.keys()) if (!desired.has(digest)) this.#files.delete(digest);
    const files = await this.#filesOf(own);
    const others = new Map<string, Files>();
    // The artifacts are read one after the other, because each is unpacked in memory.
    for (const one of besides) others.set(one.artifactDigest, await this.#filesOf(one));
    return { files, others };
  }

  #filesOf({ artifactDigest, artifactUrl }: Asked): Promise<Files> {
    const known = this.#files.get(artifactDigest);
    if (known !== undefined) return known;
    const files = this.#transfer.download(artifactUrl).then((archive) => unpackArtifact(archive, artifactDigest));
    this.#files.set(artifactDigest, files);
    files.catch(() => {
      if (this.#files.get(artifactDigest) === files) this.#files.delete(artifactDigest);
    });
    return files;
  }
}
