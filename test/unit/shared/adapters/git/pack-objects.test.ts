import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defaultGitLimits, type GitLimits } from "#shared/adapters/git/git-limits.ts";
import { Pace } from "#shared/adapters/git/pace.ts";
import { deltaSizes } from "#shared/adapters/git/pack-delta.ts";
import { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import {
  appendingDelta,
  deltaSize,
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

function idOf(content: Buffer): Buffer {
  return Buffer.from(oidOf("blob", content), "hex");
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

describe("the objects of a pack", () => {
  test("a pack has its objects and the results of its deltas, under ids that are computed", async () => {
    const first = Buffer.concat([base, Buffer.from("b: 2\n")]);
    const second = Buffer.concat([first, Buffer.from("c: 3\n")]);
    const objects = await open(
      writePack([
        // The delta comes before its base, and its base has an id that is known last.
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
    expect(objects.typeOf("0".repeat(40))).toBeUndefined();
  });

  test("a delta can copy any range of its base, of any length", async () => {
    const large = Buffer.alloc(0x30000);
    for (let at = 0; at < large.length; at++) large[at] = (at * 7 + (at >> 8)) & 0xff;
    const whole: WrittenObject = { type: packTypes.blob, data: large };
    const copies: readonly (readonly [instruction: readonly number[], from: number, length: number])[] = [
      // An instruction without a length copies 64 KB.
      [[0x80], 0, 0x10000],
      [[0x81, 0x05], 0x05, 0x10000],
      [[0x92, 0x01, 0x07], 0x100, 0x07],
      [[0x94, 0x02, 0x07], 0x20000, 0x07],
      [[0x97, 0x03, 0x02, 0x01, 0x09], 0x10203, 0x09],
      [[0xb0, 0x02, 0x03], 0, 0x302],
      [[0xc0, 0x01], 0, 0x10000],
      [[0xf1, 0x04, 0x01, 0x02, 0x01], 0x04, 0x10201],
      [[0xd3, 0xff, 0xff, 0x01, 0x02], 0xffff, 0x20001],
    ];
    for (const [instruction, from, length] of copies) {
      const made = Buffer.concat([large.subarray(from, from + length), Buffer.from("end")]);
      const data = Buffer.from([
        ...deltaSize(large.length),
        ...deltaSize(made.length),
        ...instruction,
        3,
        ...made.subarray(-3),
      ]);
      const objects = await open(writePack([whole, { type: packTypes.refDelta, base: idOf(large), data }]));
      expect((await objects.read(oidOf("blob", made), "blob")).equals(made)).toBe(true);
    }
  });

  test("a delta finds its base many bytes before it", async () => {
    const noise = { type: packTypes.blob, data: createHash("shake256", { outputLength: 40_000 }).digest() };
    const back = distance(baseLength + writeObject(noise).length);
    expect(back).toHaveLength(3);
    const made = Buffer.concat([base, Buffer.from("x")]);
    const objects = await open(
      writePack([baseObject, noise, { type: packTypes.ofsDelta, base: back, data: appendingDelta(base.length, "x") }]),
    );
    expect(await objects.read(oidOf("blob", made), "blob")).toEqual(made);
  });

  test("a chain of 2,000 deltas is resolved", async () => {
    const objects = await open(chainOf(2000));
    const last = Buffer.concat([base, Buffer.from("x".repeat(2000))]);
    expect(await objects.read(oidOf("blob", last), "blob")).toEqual(last);
  });

  test("thousands of deltas of one object are resolved, although the object is too large to be kept", async () => {
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

  test("an object that is missing or of another type is refused with that reason", async () => {
    const objects = await open(writePack([baseObject]));
    await expect(objects.read("0".repeat(40), "tree")).rejects.toThrow("did not send the tree 0000");
    await expect(objects.read(baseOid, "tree")).rejects.toThrow(`${baseOid} is a blob, but a tree is expected`);
  });
});

describe("a pack that is too large is refused before it is unpacked", () => {
  const gib = 1024 ** 3;
  // The large objects have no bytes here, so that a reader that inflates them would fail.
  const rows: readonly (readonly [legend: string, pack: Buffer, limits: Partial<GitLimits>, message: string])[] = [
    [
      "a file of 1.5 GiB",
      writePack([{ ...baseObject, size: 1.5 * gib }]),
      {},
      "the commit has an object of 1610612736 bytes; at most 104857600 are read; narrow spec.paths, if the git server",
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
  test.each(rows)("a pack with %s is refused before it is unpacked", async (_legend, pack, limits, message) => {
    await expect(open(pack, limits)).rejects.toMatchObject({
      code: "GitTooLarge",
      retry: "permanent",
      message: expect.stringContaining(message),
    });
  });

  test("a commit with megabytes of text is refused when it is read", async () => {
    const text = Buffer.concat([Buffer.from(`tree ${baseOid}\n`), Buffer.alloc(2_000_000, "x y\n")]);
    const objects = await open(writePack([{ type: packTypes.commit, data: text }]));
    await expect(objects.read(oidOf("commit", text), "commit")).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("is 2000046 bytes of text; at most 1048576 are read"),
    });
  });

  test("a commit or tag of too many bytes is refused with a remedy; a file or tree of as many bytes is read", async () => {
    const text = Buffer.alloc(101, "x");
    const types = ["commit", "tag", "blob", "tree"] as const;
    const pack = writePack(types.map((type) => ({ type: packTypes[type], data: text })));
    const objects = await open(pack, { maxTextBytes: 100 });
    for (const type of ["commit", "tag"] as const) {
      await expect(objects.read(oidOf(type, text), type)).rejects.toThrow(
        `the ${type} ${oidOf(type, text)} is 101 bytes of text; at most 100 are read; make one with a shorter message`,
      );
    }
    for (const type of ["blob", "tree"] as const) {
      await expect(objects.read(oidOf(type, text), type)).resolves.toEqual(text);
    }
    const most = await open(pack, { maxTextBytes: 101 });
    await expect(most.read(oidOf("commit", text), "commit")).resolves.toEqual(text);
  });

  test("a pack that just reaches the limits is read", async () => {
    await expect(open(chainOf(19), { maxDeltaDepth: 19 })).resolves.toBeInstanceOf(PackObjects);
    const limits = { maxObjects: 1, maxObjectBytes: base.length, maxUnpackedBytes: base.length };
    await expect(open(writePack([baseObject]), limits)).resolves.toBeDefined();
    // A delta counts with its instructions and with its result.
    const delta = refDelta(baseOid, "x");
    const unpacked = base.length + delta.data.length + base.length + 1;
    const both = writePack([baseObject, delta]);
    await expect(open(both, { maxUnpackedBytes: unpacked })).resolves.toBeDefined();
    await expect(open(both, { maxUnpackedBytes: unpacked - 1 })).rejects.toMatchObject({ code: "GitTooLarge" });
  });
});

describe("an invalid pack is refused", () => {
  const right = writePack([baseObject]);
  const flipped = Buffer.from(right);
  flipped[20] = (flipped[20] ?? 0) ^ 0xff;
  const rows: readonly (readonly [legend: string, pack: Buffer, message: string])[] = [
    ["nothing", Buffer.alloc(0), "no pack of version 2"],
    ["a web page", Buffer.from("<html>".repeat(10)), "no pack of version 2"],
    [
      "a pack of another version",
      withChecksum(Buffer.concat([Buffer.from("PACK\0\0\0\x03"), right.subarray(8, -20)])),
      "no pack",
    ],
    ["less than a header", Buffer.from("PACK\0\0\0\x02"), "no pack of version 2"],
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
    ...[
      ["a delta that copies one byte too many of its base", [base.length + 1], [0x90, base.length + 1]],
      ["a delta that copies a byte behind its base", [1], [0x91, base.length, 1]],
      ["a delta that makes more than it says", [2], [0x90, 3]],
      ["a delta that adds more than it says", [2], [3, 1, 2, 3]],
      ["a delta that has less to add than it says", [3], [3, 1, 2]],
      ["a delta whose copy breaks off", [base.length], [0x90]],
    ].map(([legend, result, instructions]) => {
      const sizes = [...deltaSize(base.length), ...deltaSize(Number(result))];
      const data = Buffer.from([...sizes, ...(instructions as number[])]);
      const pack = writePack([baseObject, { ...refDelta(baseOid, ""), data }]);
      return [String(legend), pack, "does not fit its object"] as const;
    }),
    ...[
      ["a delta without a size", Buffer.alloc(20, 0xff)],
      ["a delta of nothing", Buffer.alloc(0)],
      ["a delta with one size", Buffer.from(deltaSize(base.length))],
      ["a delta whose size breaks off", Buffer.from([...deltaSize(base.length), 0x80])],
    ].map(([legend, data]) => {
      const pack = writePack([baseObject, { ...refDelta(baseOid, ""), data: data as Buffer }]);
      return [String(legend), pack, "a delta of the pack has no size"] as const;
    }),
  ];
  test.each(rows)("an invalid pack is refused: %s", async (_legend, pack, message) => {
    await expect(open(pack)).rejects.toMatchObject({
      code: "GitOperationFailed",
      retry: "transient",
      message: expect.stringContaining(message),
    });
  });
});

test("a delta may have sizes up to 2^53, and no larger ones", () => {
  const seven = (last: number) => [...Array(7).fill(0x80), last];
  expect(deltaSizes(Buffer.from([...seven(1), 5]))).toEqual({ baseBytes: 2 ** 49, resultBytes: 5, at: 9 });
  expect(() => deltaSizes(Buffer.from([0x80, ...seven(1), 5]))).toThrow("has no size");
});

test("an unpacking that takes too long ends with the deadline of the fetch", async () => {
  const pack = writePack(Array.from({ length: 20_000 }, () => baseObject));
  const reading = { limits: defaultGitLimits, pace: new Pace(0) };
  await expect(PackObjects.open(pack, reading)).rejects.toMatchObject({
    code: "GitTooLarge",
    message: expect.stringContaining("cannot be fetched and read within 0 s"),
  });
});

/** A pace whose time is over after the given number of questions. */
class EndingPace extends Pace {
  #asked = 0;
  readonly #turns: number;

  constructor(turns: number) {
    super(0);
    this.#turns = turns;
  }

  override isDue(): boolean {
    this.#asked += 1;
    return this.#asked > this.#turns;
  }
}

test.each([
  ["its checksum", 0, true],
  ["its objects", 3, true],
  ["its deltas", 4, true],
  ["its deltas, at the last", 5, true],
  ["nothing", 6, false],
])("the deadline of a fetch ends the work within %s", async (_where, turns, ends) => {
  const pack = writePack([baseObject, refDelta(baseOid, "x"), refDelta(baseOid, "y")]);
  const opened = PackObjects.open(pack, { limits: defaultGitLimits, pace: new EndingPace(turns) });
  if (ends) await expect(opened).rejects.toMatchObject({ code: "GitTooLarge" });
  else await expect(opened).resolves.toBeInstanceOf(PackObjects);
});

test("other work continues while a pack is unpacked", async () => {
  const pack = writePack(Array.from({ length: 20_000 }, () => baseObject));
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 1);
  await open(pack);
  clearInterval(counting);
  expect(turns).toBeGreaterThan(1);
});
