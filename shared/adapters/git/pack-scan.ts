import { createHash } from "node:crypto";
import { type GitLimits, gitTooLarge, malformedGitAnswer, splitRepository } from "#shared/adapters/git/git-limits.ts";
import type { Pace } from "#shared/adapters/git/pace.ts";
import { deltaSizes } from "#shared/adapters/git/pack-delta.ts";
import { inflateExactly } from "#shared/adapters/git/pack-inflate.ts";

export type ObjectType = "commit" | "tree" | "blob" | "tag";

/** An object as it is in the pack. */
export interface PackedObject {
  /** Where the object begins; deltas name their base by it. */
  readonly offset: number;
  /** The beginning of its compressed bytes. */
  readonly dataAt: number;
  /** The size of the compressed data; for a delta, of its instructions. */
  readonly size: number;
  /** `undefined` for a delta. */
  readonly type: ObjectType | undefined;
  /** For a delta: the offset of its base, or the object id of its base. */
  readonly base: number | string | undefined;
}

export interface PackReading {
  readonly limits: GitLimits;
  readonly pace: Pace;
}

const headerBytes = 12;
const checksumBytes = 20;
const oidBytes = 20;
const hashSliceBytes = 4 * 1024 * 1024;
/** A size with more bits is larger than any limit. */
const maxSizeBits = 46;

const typeNames: Readonly<Record<number, ObjectType>> = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" };
const ofsDelta = 6;
const refDelta = 7;

/**
 * Finds the objects of a pack (gitformat-pack). A pack does not say where an object ends, so that each must be
 * inflated. This happens only after the declared sizes of the object and of a delta's result are within the limits.
 * @param visit - receives each object with its bytes: the content, or a delta's instructions.
 * @throws StarlingError `GitTooLarge`, or `GitOperationFailed` for an invalid pack.
 */
export async function scanPack(
  pack: Buffer,
  { limits, pace }: PackReading,
  visit: (object: PackedObject, bytes: Buffer) => void,
): Promise<void> {
  const count = objectCount(pack);
  if (count > limits.maxObjects) {
    throw gitTooLarge(`the commit has ${count} objects; at most ${limits.maxObjects} are read`, splitRepository);
  }
  await verifyChecksum(pack, pace);
  const end = pack.length - checksumBytes;
  const objects = pack.subarray(0, end);
  let at = headerBytes;
  let unpacked = 0;

  function charge(size: number): void {
    unpacked += size;
    if (size > limits.maxObjectBytes) {
      throw gitTooLarge(
        `the commit has an object of ${size} bytes; at most ${limits.maxObjectBytes} are read`,
        splitRepository,
      );
    }
    if (unpacked > limits.maxUnpackedBytes) {
      const most = `at most ${limits.maxUnpackedBytes} are read`;
      throw gitTooLarge(`the commit's objects are more than ${unpacked} bytes; ${most}`, splitRepository);
    }
  }

  for (let index = 0; index < count; index++) {
    if (pace.isDue()) await pace.rest();
    const object = headerAt(objects, at);
    charge(object.size);
    const inflated = inflateExactly(objects, object.dataAt, object.size);
    if (object.type === undefined) charge(deltaSizes(inflated.bytes).resultBytes);
    visit(object, inflated.bytes);
    at = inflated.end;
  }
  if (at !== end) throw malformedGitAnswer("the pack contains more than its objects");
}

function objectCount(pack: Buffer): number {
  const isPack = pack.length >= headerBytes + checksumBytes && pack.toString("latin1", 0, 4) === "PACK";
  if (!isPack || pack.readUInt32BE(4) !== 2) throw malformedGitAnswer("the git server sent no pack of version 2");
  return pack.readUInt32BE(8);
}

async function verifyChecksum(pack: Buffer, pace: Pace): Promise<void> {
  const hash = createHash("sha1");
  const end = pack.length - checksumBytes;
  for (let at = 0; at < end; at += hashSliceBytes) {
    if (pace.isDue()) await pace.rest();
    hash.update(pack.subarray(at, Math.min(at + hashSliceBytes, end)));
  }
  if (!hash.digest().equals(pack.subarray(end)))
    throw malformedGitAnswer("the pack does not have the checksum it ends with");
}

function headerAt(pack: Buffer, offset: number): PackedObject {
  let at = offset;
  const next = (): number => {
    const byte = pack[at++];
    if (byte === undefined) throw malformedGitAnswer("the pack ends within an object");
    return byte;
  };
  let byte = next();
  const type = (byte >> 4) & 0x07;
  let size = byte & 0x0f;
  for (let bits = 4; (byte & 0x80) !== 0; bits += 7) {
    if (bits > maxSizeBits) throw malformedGitAnswer("an object of the pack has no size");
    byte = next();
    size += (byte & 0x7f) * 2 ** bits;
  }
  if (type === ofsDelta) {
    const base = offset - distanceOf(next);
    if (base < headerBytes || base >= offset)
      throw malformedGitAnswer("a delta of the pack has its base outside of the pack");
    return { offset, dataAt: at, size, type: undefined, base };
  }
  if (type === refDelta) {
    const base = pack.toString("hex", at, at + oidBytes);
    return { offset, dataAt: at + oidBytes, size, type: undefined, base };
  }
  const name = typeNames[type];
  if (name === undefined) throw malformedGitAnswer(`the pack has an object of type ${type}`);
  return { offset, dataAt: at, size, type: name, base: undefined };
}

/** Git's "offset encoding": each byte except the last adds one. */
function distanceOf(next: () => number): number {
  let byte = next();
  let distance = byte & 0x7f;
  while ((byte & 0x80) !== 0 && distance < 2 ** maxSizeBits) {
    byte = next();
    distance = (distance + 1) * 0x80 + (byte & 0x7f);
  }
  return distance;
}
