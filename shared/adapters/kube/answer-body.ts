const blockBytes = 64 * 1024;

/** Collects bytes in blocks. A list of chunks would need a hundred bytes for each chunk of one byte. */
export class AnswerBody {
  readonly #blocks: Buffer[] = [];
  #block = Buffer.alloc(0);
  #used = 0;
  #size = 0;
  #pieces = 0;

  /** @returns the number of bytes so far. */
  add(chunk: Buffer): number {
    this.#pieces += 1;
    this.#size += chunk.length;
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#used === this.#block.length) {
        // Most answers have one chunk.
        const isFirst = this.#blocks.length === 0;
        this.#block = Buffer.allocUnsafe(isFirst ? Math.min(rest.length, blockBytes) : blockBytes);
        this.#used = 0;
        this.#blocks.push(this.#block);
      }
      const copied = rest.copy(this.#block, this.#used);
      this.#used += copied;
      rest = rest.subarray(copied);
    }
    return this.#size;
  }

  get pieces(): number {
    return this.#pieces;
  }

  text(): string {
    const whole =
      this.#blocks.length === 1 ? this.#block.subarray(0, this.#size) : Buffer.concat(this.#blocks, this.#size);
    return whole.toString("utf8");
  }
}
