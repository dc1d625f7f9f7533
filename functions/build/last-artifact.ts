import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Transfer } from "#shared/ports.ts";
import type { BuildJob } from "#shared/source/build-job.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";

type Asked = Pick<BuildJob, "artifactDigest" | "artifactUrl">;
type Files = readonly ListedFile[];

export interface ReadArtifacts {
  readonly files: Files;
  /** Of each other that values are from, by its digest. */
  readonly others: ReadonlyMap<string, Files>;
}

/**
 * The artifacts of a sandbox, read once: it serves one, or one with the same others beside it, and a fleet asks it for a
 * thousand renderings. Where jobs name others, as on one machine, those of the last are kept.
 */
export class LastArtifact {
  readonly #transfer: Transfer;
  readonly #files = new Map<string, Promise<Files>>();

  constructor(transfer: Transfer) {
    this.#transfer = transfer;
  }

  /** @throws StarlingError `TransferFailed`, `ArtifactInvalid`: it is read again then. */
  async read({ besides = [], ...own }: Asked & Pick<BuildJob, "besides">): Promise<ReadArtifacts> {
    const desired = new Set([own, ...besides].map(({ artifactDigest }) => artifactDigest));
    for (const digest of this.#files.keys()) if (!desired.has(digest)) this.#files.delete(digest);
    const files = await this.#filesOf(own);
    const others = new Map<string, Files>();
    // One after the other: each is unpacked as a whole.
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
