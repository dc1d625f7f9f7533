/** Packs written by hand, right and wrong (gitformat-pack). */
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

export const packTypes = { commit: 1, tree: 2, blob: 3, tag: 4, ofsDelta: 6, refDelta: 7 } as const;

export interface WrittenObject {
  readonly type: number;
  /** What is compressed. */
  readonly data: Buffer;
  /** Of a delta: what names the base. */
  readonly base?: Buffer;
  /** Announced; by default the truth. */
  readonly size?: number;
}

export function writePack(objects: readonly WrittenObject[], count = objects.length): Buffer {
  const head = Buffer.alloc(12);
  head.write("PACK", 0, "latin1");
  head.writeUInt32BE(2, 4);
  head.writeUInt32BE(count, 8);
  return withChecksum(Buffer.concat([head, ...objects.map(writeObject)]));
}

export function withChecksum(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, createHash("sha1").update(bytes).digest()]);
}

export function writeObject({ type, data, base = Buffer.alloc(0), size = data.length }: WrittenObject): Buffer {
  const header: number[] = [];
  let rest = Math.floor(size / 16);
  header.push((type << 4) | (size % 16) | (rest > 0 ? 0x80 : 0));
  while (rest > 0) {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    header.push(low | (rest > 0 ? 0x80 : 0));
  }
  return Buffer.concat([Buffer.from(header), base, deflateSync(data)]);
}

/** The distance to the base of an ofs-delta. */
export function distance(bytes: number): Buffer {
  const digits = [bytes % 128];
  for (let rest = Math.floor(bytes / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    digits.unshift(0x80 | (rest % 128));
  }
  return Buffer.from(digits);
}

/** A size as deltas write it. */
export function deltaSize(size: number): number[] {
  const low = size % 128;
  const rest = Math.floor(size / 128);
  return rest === 0 ? [low] : [low | 0x80, ...deltaSize(rest)];
}

/** A delta that copies the whole base, of less than 64 KB, and adds some bytes. */
export function appendingDelta(baseBytes: number, added: string, resultBytes = baseBytes + added.length): Buffer {
  const copy = [0x80 | 0x10 | 0x20, baseBytes & 0xff, baseBytes >> 8];
  const insert = added === "" ? [] : [added.length, ...Buffer.from(added)];
  return Buffer.from([...deltaSize(baseBytes), ...deltaSize(resultBytes), ...copy, ...insert]);
}

export function oidOf(type: "commit" | "tree" | "blob" | "tag", content: Buffer): string {
  return createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");
}
