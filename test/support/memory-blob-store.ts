import { blobTooLarge } from "#shared/adapters/aws/blob-too-large.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Blobs in memory. They pass the same contract suite as S3. */
export class MemoryBlobStore implements BlobStore {
  readonly #blobs = new Map<string, Uint8Array>();
  readonly #storedAt = new Map<string, Date>();
  readonly #now: () => Date;
  /** The keys that were read, in their order. */
  readonly reads: string[] = [];

  constructor(now: () => Date = () => new Date()) {
    this.#now = now;
  }

  async overwrite(key: string, bytes: Uint8Array): Promise<void> {
    // `slice()` of a Buffer would share its memory.
    this.#blobs.set(key, Uint8Array.from(bytes));
    this.#storedAt.set(key, this.#now());
  }

  async renew(key: string, before: Date): Promise<void> {
    const at = this.#storedAt.get(key);
    if (at === undefined) throw notFound(key);
    if (at < before) this.#storedAt.set(key, this.#now());
  }

  /** Deletes a blob as somebody else might. */
  lose(key: string): void {
    this.#blobs.delete(key);
    this.#storedAt.delete(key);
  }

  /** Works like a lifecycle rule: deletes the blobs that were last stored this many days ago. */
  expire(days: number): void {
    const last = this.#now().getTime() - days * 86_400_000;
    for (const [key, at] of this.#storedAt) if (at.getTime() < last) this.lose(key);
  }

  keys(): readonly string[] {
    return [...this.#blobs.keys()];
  }

  async get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array> {
    this.reads.push(key);
    const bytes = this.#blobs.get(key);
    if (bytes === undefined) throw notFound(key);
    if (limits !== undefined && bytes.length > limits.maxBytes) {
      throw blobTooLarge({ key, size: bytes.length, maxBytes: limits.maxBytes });
    }
    return Uint8Array.from(bytes);
  }
}

function notFound(key: string): StarlingError {
  return new StarlingError(`no blob ${key}`, { code: "BlobNotFound", retry: "permanent", data: { key } });
}
