import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";

const lengthDigits = 4;
const lengthPattern = /^[0-9a-fA-F]{4}$/;

/** A line of git's protocol (gitprotocol-common), or a marker between lines: `flush`, `delimiter`, `end`. */
export type Packet = Buffer | "flush" | "delimiter" | "end";

const markers: Readonly<Record<number, Packet>> = { 0: "flush", 1: "delimiter", 2: "end" };

/** Splits a stream into packets. It keeps at most one packet (64 KB). */
export class PacketReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The complete packets. They are views of `chunk`, valid until the next call. */
  *read(chunk: Buffer): Generator<Packet> {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= lengthDigits) {
      const length = lengthAt(bytes, at);
      if (length < lengthDigits) {
        const marker = markers[length];
        if (marker === undefined) throw malformedGitAnswer(`the git server sent a packet of length ${length}`);
        at += lengthDigits;
        yield marker;
        continue;
      }
      if (bytes.length - at < length) break;
      yield bytes.subarray(at + lengthDigits, at + length);
      at += length;
    }
    // A copy, because a view would keep the whole chunk.
    this.#rest = Buffer.from(bytes.subarray(at));
  }

  /** @throws StarlingError when the stream ended inside a packet. */
  end(): void {
    if (this.#rest.length > 0) throw malformedGitAnswer("the git server's answer is incomplete");
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  const digits = bytes.toString("latin1", at, at + lengthDigits);
  if (!lengthPattern.test(digits))
    throw malformedGitAnswer(`the git server sent ${JSON.stringify(digits)} as a packet's length`);
  return Number.parseInt(digits, 16);
}

export function packetLine(text: string): string {
  return (Buffer.byteLength(text) + lengthDigits).toString(16).padStart(lengthDigits, "0") + text;
}
