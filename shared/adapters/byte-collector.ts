const firstBytes = 64 * 1024;

/**
 * Joins pieces into one buffer. The pieces are copied, because a list would need 100 bytes for each piece, and the
 * sender chooses how small the pieces are.
 */
export class ByteCollector {
  readonly #maxBytes: number;
  #buffer: Buffer = Buffer.alloc(0);
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns whether the piece fits; otherwise nothing is added. */
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.length;
    if (size > this.#maxBytes) return false;
    if (size > this.#buffer.length) this.#grow(size);
    this.#buffer.set(piece, this.#size);
    this.#size = size;
    return true;
  }

  get size(): number {
    return this.#size;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  #grow(size: number): void {
    const capacity = Math.min(this.#maxBytes, Math.max(size, this.#buffer.length * 2, firstBytes));
    const larger = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(larger, 0, 0, this.#size);
    this.#buffer = larger;
  }
}
