import { describe, expect, test } from "vitest";
import { defaultGitLimits, type GitLimits } from "#shared/adapters/git/git-limits.ts";
import { Pace } from "#shared/adapters/git/pace.ts";
import { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import {
  appendingDelta,
  distance,
  oidOf,
  packTypes,
  type WrittenObject,
  withChecksum,
  writeObject,
  writePack,
} from "#test/support/written-pack.ts";

const base = Buffer.from("a: 1\n".repeat(30));
const baseOid = oidOf("blob", base);
const baseObject: WrittenObject = { type: packTypes.blob, data: base };
const baseLength = writeObject(baseObject).length;

function open(pack: Buffer, limits: Partial<GitLimits> = {}): Promise<PackObjects> {
  return PackObjects.open(pack, { limits: { ...defaultGitLimits, ...limits }, pace: new Pace(60) });
}

function refDelta(oid: string, added: string): WrittenObject {
  return { type: packTypes.refDelta, base: Buffer.from(oid, "hex"), data: appendingDelta(base.length, added) };
}

/** A blob, and deltas each of which adds `x` to the one before. */
function chainOf(length: number): Buffer {
  const objects: WrittenObject[] = [baseObject];
  for (let depth = 0; depth < length; depth++) {
    const before = objects.at(-1);
    if (before === undefined) break;
    const back = distance(writeObject(before).length);
    objects.push({ type: packTypes.ofsDelta, base: back, data: appendingDelta(base.length + depth, "x") });
  }
  return writePack(objects);
}

describe("what a pack holds", () => {
  test("objects, and what deltas make of them, by ids that are computed", async () => {
    const first = Buffer.concat([base, Buffer.from("b: 2\n")]);
    const second = Buffer.concat([first, Buffer.from("c: 3\n")]);
    const objects = await open(
      writePack([
        // Before its base, and named by an id that is known last of all.
        {
          type: packTypes.refDelta,
          base: Buffer.from(oidOf("blob", first), "hex"),
          data: appendingDelta(first.length, "c: 3\n"),
        },
        baseObject,
        { type: packTypes.ofsDelta, base: distance(baseLength), data: appendingDelta(base.length, "b: 2\n") },
        { type: packTypes.tree, data: Buffer.alloc(0) },
      ]),
    );
    expect(await objects.read(baseOid, "blob")).toEqual(base);
    expect(await objects.read(oidOf("blob", first), "blob")).toEqual(first);
    expect(await objects.read(oidOf("blob", second), "blob")).toEqual(second);
    expect(objects.typeOf("4b825dc642cb6eb9a060e54bf8d69288fbee4904")).toBe("tree");
    expect(objects.has("0".repeat(40))).toBe(false);
  });

  test("a long chain of deltas", async () => {
    const objects = await open(chainOf(2000));
    const last = Buffer.concat([base, Buffer.from("x".repeat(2000))]);
    expect(await objects.read(oidOf("blob", last), "blob")).toEqual(last);
  });

  test("thousands of deltas of one object that is too large to be kept", async () => {
    const large = Buffer.alloc(17 * 1024 * 1024);
    const first: WrittenObject = { type: packTypes.blob, data: large };
    const baseId = Buffer.from(oidOf("blob", large), "hex");
    const deltas = Array.from({ length: 3000 }, (_, index) => {
      const text = Buffer.from(`v-${index}`);
      const sizes = [0x80, 0x80, 0x80 | 0x40, 0x08, text.length];
      return { type: packTypes.refDelta, base: baseId, data: Buffer.from([...sizes, text.length, ...text]) };
    });
    const objects = await open(writePack([first, ...deltas]));
    expect(await objects.read(oidOf("blob", Buffer.from("v-2999")), "blob")).toEqual(Buffer.from("v-2999"));
  });

  test("what is not there, or something else, is said so", async () => {
    const objects = await open(writePack([baseObject]));
    await expect(objects.read("0".repeat(40), "tree")).rejects.toThrow("did not send the tree 0000");
    await expect(objects.read(baseOid, "tree")).rejects.toThrow(`${baseOid} is a blob where a tree is expected`);
  });
});

describe("a pack that is too large is refused before it is unpacked", () => {
  const gib = 1024 ** 3;
  // Of the large objects there are no bytes at all: whoever would inflate them could not.
  const rows: readonly (readonly [legend: string, pack: Buffer, limits: Partial<GitLimits>, message: string])[] = [
    [
      "a file of 1.5 GiB",
      writePack([{ ...baseObject, size: 1.5 * gib }]),
      {},
      "the commit has an object of 1610612736 bytes; at most 104857600 are read; spec.paths does not help",
    ],
    ["a size of 2^50", writePack([{ ...baseObject, size: 2 ** 50 }]), {}, "an object of 1125899906842624 bytes"],
    [
      "a delta whose result is of 1.5 GiB",
      writePack([
        baseObject,
        { type: packTypes.ofsDelta, base: distance(baseLength), data: appendingDelta(base.length, "", 1.5 * gib) },
      ]),
      {},
      "an object of 1610612736 bytes",
    ],
    [
      "four thousand million objects",
      writePack([baseObject], 2 ** 32 - 1),
      {},
      "has 4294967295 objects; at most 250000",
    ],
    ["objects together", writePack([baseObject, baseObject]), { maxUnpackedBytes: 200 }, "at most 200 are read"],
    ["deltas upon deltas", chainOf(20), { maxDeltaDepth: 19 }, "a chain of more than 19 deltas"],
  ];
  test.each(rows)("%s", async (_legend, pack, limits, message) => {
    await expect(open(pack, limits)).rejects.toMatchObject({
      code: "GitTooLarge",
      retry: "permanent",
      message: expect.stringContaining(message),
    });
  });

  test("a commit of megabytes of text, when it is read", async () => {
    const text = Buffer.concat([Buffer.from(`tree ${baseOid}\n`), Buffer.alloc(2_000_000, "x y\n")]);
    const objects = await open(writePack([{ type: packTypes.commit, data: text }]));
    await expect(objects.read(oidOf("commit", text), "commit")).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("is 2000046 bytes of text; at most 1048576 are read"),
    });
  });

  test("the limits themselves are let through", async () => {
    await expect(open(chainOf(19), { maxDeltaDepth: 19 })).resolves.toBeInstanceOf(PackObjects);
    await expect(open(writePack([baseObject]), { maxObjects: 1, maxObjectBytes: base.length })).resolves.toBeDefined();
  });
});

describe("a pack that is none", () => {
  const right = writePack([baseObject]);
  const flipped = Buffer.from(right);
  flipped[20] = (flipped[20] ?? 0) ^ 0xff;
  const rows: readonly (readonly [legend: string, pack: Buffer, message: string])[] = [
    ["nothing", Buffer.alloc(0), "no pack of version 2"],
    ["something else", Buffer.from("<html>".repeat(10)), "no pack of version 2"],
    ["a checksum that is wrong", flipped, "does not have the checksum"],
    ["one that breaks off", right.subarray(0, -5), "checksum"],
    ["fewer objects than it says", writePack([baseObject], 2), "the pack ends within an object"],
    ["more objects than it says", writePack([baseObject, baseObject], 1), "more than its objects"],
    [
      "an object that is longer than it says",
      writePack([{ ...baseObject, size: 10 }]),
      "does not inflate to the 10 bytes",
    ],
    ["an object that is shorter", writePack([{ ...baseObject, size: 1000 }]), "does not inflate to the 1000 bytes"],
    [
      "an object that is not compressed",
      withChecksum(Buffer.concat([right.subarray(0, 12), Buffer.from([0x35, 1, 2, 3])])),
      "does not inflate to",
    ],
    ["a type that does not exist", writePack([{ ...baseObject, type: 5 }]), "an object of type 5"],
    [
      "a size without an end",
      withChecksum(Buffer.concat([right.subarray(0, 12), Buffer.alloc(40, 0xff)])),
      "has no size",
    ],
    [
      "a delta of itself",
      writePack([{ type: packTypes.ofsDelta, base: distance(0), data: appendingDelta(5, "x") }]),
      "its base outside of the pack",
    ],
    [
      "a delta of what is before the pack",
      writePack([{ type: packTypes.ofsDelta, base: distance(5000), data: appendingDelta(5, "x") }]),
      "its base outside of the pack",
    ],
    [
      "a delta of the middle of an object",
      writePack([baseObject, { type: packTypes.ofsDelta, base: distance(3), data: appendingDelta(5, "x") }]),
      "1 deltas without their base",
    ],
    [
      "deltas of each other",
      writePack([refDelta("a".repeat(40), "x"), refDelta("b".repeat(40), "y")]),
      "2 deltas without",
    ],
    [
      "a delta of an object of another size",
      writePack([baseObject, { ...refDelta(baseOid, "x"), data: appendingDelta(5, "x") }]),
      "belongs to another object",
    ],
    [
      "a delta that copies what is not there",
      writePack([
        { type: packTypes.blob, data: Buffer.from("abc") },
        {
          type: packTypes.refDelta,
          base: Buffer.from(oidOf("blob", Buffer.from("abc")), "hex"),
          data: Buffer.from([3, 100, 0x80 | 0x10, 100]),
        },
      ]),
      "does not fit its object",
    ],
    [
      "a delta that ends too early",
      writePack([baseObject, { ...refDelta(baseOid, ""), data: appendingDelta(base.length, "", 400) }]),
      "ends too early",
    ],
    [
      "a delta with an instruction that does nothing",
      writePack([baseObject, { ...refDelta(baseOid, ""), data: Buffer.from([0x96, 0x01, 0x05, 0, 0, 0]) }]),
      "does not fit its object",
    ],
    [
      "a delta without a size",
      writePack([baseObject, { ...refDelta(baseOid, ""), data: Buffer.alloc(20, 0xff) }]),
      "has no size",
    ],
  ];
  test.each(rows)("%s", async (_legend, pack, message) => {
    await expect(open(pack)).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
      message: expect.stringContaining(message),
    });
  });
});

test("the time of a fetch ends within a pack", async () => {
  const pack = writePack(Array.from({ length: 20_000 }, () => baseObject));
  const reading = { limits: defaultGitLimits, pace: new Pace(0) };
  await expect(PackObjects.open(pack, reading)).rejects.toMatchObject({
    code: "GitTooLarge",
    message: expect.stringContaining("cannot be fetched and read within 0 s"),
  });
});

test("others have their turn while a pack is unpacked", async () => {
  const pack = writePack(Array.from({ length: 20_000 }, () => baseObject));
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 1);
  await open(pack);
  clearInterval(counting);
  expect(turns).toBeGreaterThan(1);
});
