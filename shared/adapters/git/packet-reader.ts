import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";

const lengthDigits = 4;
const lengthPattern = /^[0-9a-fA-F]{4}$/;

/** A line of git's protocol (gitprotocol-common), or what stands between lines: `flush`, `delimiter`, `end`. */
export type Packet = Buffer | "flush" | "delimiter" | "end";

const markers: Readonly<Record<number, Packet>> = { 0: "flush", 1: "delimiter", 2: "end" };

/** Cuts a stream into packets; keeps no more than one of them (64 KB). */
export class PacketReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The packets that are whole now; views of `chunk`, good until the next one. */
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
    // A copy: the view would keep the whole chunk.
    this.#rest = Buffer.from(bytes.subarray(at));
  }

  /** @throws StarlingError when the stream ended within a packet. */
  end(): void {
    if (this.#rest.length > 0) throw malformedGitAnswer("the git server's answer breaks off");
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  const digits = bytes.toString("latin1", at, at + lengthDigits);
  if (!lengthPattern.test(digits))
    throw malformedGitAnswer(`the git server sent ${JSON.stringify(digits)} for a length`);
  return Number.parseInt(digits, 16);
}

export function packetLine(text: string): string {
  return (Buffer.byteLength(text) + lengthDigits).toString(16).padStart(lengthDigits, "0") + text;
}
