import { StarlingError } from "#shared/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Blobs in memory, held to the same contract suite as S3. */
export class MemoryBlobStore implements BlobStore {
  readonly #blobs = new Map<string, Uint8Array>();

  async putOnce(key: string, bytes: Uint8Array): Promise<boolean> {
    if (this.#blobs.has(key)) return false;
    this.#blobs.set(key, bytes.slice());
    return true;
  }

  async get(key: string): Promise<Uint8Array> {
    const bytes = this.#blobs.get(key);
    if (bytes === undefined) {
      throw new StarlingError(`no blob ${key}`, { code: "BlobNotFound", retry: "permanent", data: { key } });
    }
    return bytes.slice();
  }
}
