import { blobTooLarge } from "#shared/adapters/aws/blob-too-large.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Blobs in memory, held to the same contract suite as S3. */
export class MemoryBlobStore implements BlobStore {
  readonly #blobs = new Map<string, Uint8Array>();

  async putOnce(key: string, bytes: Uint8Array): Promise<boolean> {
    if (this.#blobs.has(key)) return false;
    await this.overwrite(key, bytes);
    return true;
  }

  async overwrite(key: string, bytes: Uint8Array): Promise<void> {
    // Not slice(): a Buffer's shares its memory.
    this.#blobs.set(key, Uint8Array.from(bytes));
  }

  /** What somebody deletes behind our back. */
  lose(key: string): void {
    this.#blobs.delete(key);
  }

  async get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array> {
    const bytes = this.#blobs.get(key);
    if (bytes === undefined) {
      throw new StarlingError(`no blob ${key}`, { code: "BlobNotFound", retry: "permanent", data: { key } });
    }
    if (limits !== undefined && bytes.length > limits.maxBytes) {
      throw blobTooLarge({ key, size: bytes.length, maxBytes: limits.maxBytes });
    }
    return Uint8Array.from(bytes);
  }
}
