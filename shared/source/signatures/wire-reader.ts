const lengthBytes = 4;

/** Reads the wire format of SSH (RFC 4251): numbers of four bytes, and bytes after their length. */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** @throws RangeError when the bytes end before. */
  take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError("it ends too early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  number(): number {
    return this.take(lengthBytes).readUInt32BE();
  }

  bytes(): Buffer {
    return this.take(this.number());
  }

  text(): string {
    return this.bytes().toString("latin1");
  }

  /** A number of any length, without the zeros in front. */
  integer(): Buffer {
    const bytes = this.bytes();
    const first = bytes.findIndex((byte) => byte !== 0);
    return first < 0 ? Buffer.alloc(0) : bytes.subarray(first);
  }
}

export function wireBytes(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
