/** Hostile signatures and keys of OpenPGP: a reason, within bounded time and memory. */
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { type PublicSubkeyPacket, readKey, readSignature, unarmor } from "openpgp";
import { beforeAll, describe, expect, test } from "vitest";
import { verifyPgp } from "#shared/adapters/signatures/verify-pgp.ts";
import { readProvenance } from "#shared/source/helm/provenance.ts";
import { readClearSigned } from "#shared/source/signatures/clear-signed.ts";
import { pgpKeyProblem } from "#shared/source/signatures/pgp-key.ts";
import { clearSign, type PgpKey, pgpKey, signDetached } from "#test/support/pgp-keys.ts";

const mostMs = 2000;
let bot: PgpKey;
let armour: string;

beforeAll(async () => {
  bot = await pgpKey();
  armour = await signDetached("x", [bot]);
});

function armoured(type: "SIGNATURE" | "PUBLIC KEY BLOCK", bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN PGP ${type}-----`, "", ...lines, `-----END PGP ${type}-----`, ""].join("\n");
}

/** A packet in the new form. */
function packet(tag: number, body: Uint8Array): Buffer {
  const length = Buffer.alloc(5);
  length[0] = 0xff;
  length.writeUInt32BE(body.length, 1);
  return Buffer.concat([Buffer.from([0xc0 | tag]), length, body]);
}

/** Verifies with a measured time. */
async function verdictOf(signature: string, keys: readonly string[], content = "x") {
  const start = performance.now();
  const verdict = await verifyPgp({ content: Buffer.from(content), armour: signature }, keys, new Date());
  expect(performance.now() - start).toBeLessThan(mostMs);
  return verdict;
}

describe("a hostile signature", () => {
  const zeros = Buffer.alloc(50_000_000);

  test.each<[string, () => Uint8Array]>([
    ["a compressed bomb", () => packet(8, Buffer.concat([Buffer.from([1]), deflateRawSync(deflateRawSync(zeros))]))],
    [
      "a key that asks for gigabytes of Argon2",
      () => packet(3, Buffer.from([4, 9, 4, ...Buffer.alloc(16), 255, 255, 31])),
    ],
    [
      "a key that asks for the most of an iterated hash",
      () => packet(3, Buffer.from([4, 9, 3, 8, ...Buffer.alloc(8), 255])),
    ],
    ["a packet that claims 4 GB", () => Buffer.from([0xc2, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0])],
    ["parts without an end", () => Buffer.concat([Buffer.from([0xc2]), Buffer.alloc(4000, 0xe0)])],
    ["a packet of no known type", () => packet(60, Buffer.alloc(100))],
    ["a message", () => packet(11, Buffer.from("b\0\0\0\0\0x"))],
    ["a public key", () => packet(6, Buffer.from([4, 0, 0, 0, 0, 22]))],
  ])("%s in place of a signature is damaged", async (_what, bytes) => {
    expect(await verdictOf(armoured("SIGNATURE", bytes()), [bot.publicKey])).toMatchObject({ kind: "invalid" });
  });

  test("thousands of signatures are refused before any is verified", async () => {
    const { data } = await unarmor(armour);
    const bytes = Buffer.from(data as Uint8Array);
    const many = armoured("SIGNATURE", Buffer.concat(Array.from({ length: 10_000 }, () => bytes)));
    expect(await verdictOf(many, [bot.publicKey])).toEqual({
      kind: "invalid",
      problem: "has more than 16384 characters",
    });
    const some = armoured("SIGNATURE", Buffer.concat(Array.from({ length: 40 }, () => bytes)));
    expect(await verdictOf(some, [bot.publicKey])).toEqual({ kind: "invalid", problem: "is more than one signature" });
  });

  test("no changed byte and no cut of a signature makes it fit another content, or ends in an error", async () => {
    const { data } = await unarmor(armour);
    const bytes = Buffer.from(data as Uint8Array);
    expect(await verdictOf(armoured("SIGNATURE", bytes), [bot.publicKey])).toMatchObject({ kind: "verified" });
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      for (const one of [changed, bytes.subarray(0, at)]) {
        expect((await verdictOf(armoured("SIGNATURE", one), [bot.publicKey], "y")).kind).not.toBe("verified");
      }
      expect((await verdictOf(armoured("SIGNATURE", bytes.subarray(0, at)), [bot.publicKey])).kind).not.toBe(
        "verified",
      );
    }
  });

  test("a signature that names a trusted key, and is made by another one, is refused", async () => {
    const stranger = await pgpKey();
    const forged = await readSignature({ armoredSignature: await signDetached("x", [stranger]) });
    const [only] = forged.packets;
    if (only === undefined) throw new Error("nothing was signed");
    const trusted = await readKey({ armoredKey: bot.publicKey });
    only.issuerKeyID = trusted.getKeyID();
    const found = await verdictOf(forged.armor(), [bot.publicKey]);
    expect(found.kind).not.toBe("verified");
  });
});

describe("hostile keys", () => {
  test("20 blocks of as many subkeys as fit are read in bounded time, and do not hide the right key", async () => {
    const key = await readKey({ armoredKey: bot.publicKey });
    const own = Buffer.from(key.write());
    const point = Buffer.concat([
      Buffer.from([4, 0, 0, 0, 0, 22, 9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1, 1, 7, 0x40]),
      Buffer.alloc(32, 7),
    ]);
    const subkeys = Array.from({ length: 150 }, () => packet(14, point));
    const block = armoured("PUBLIC KEY BLOCK", Buffer.concat([own, ...subkeys]));
    expect(block.length).toBeLessThan(16_384);
    expect(pgpKeyProblem(block)).toBeUndefined();
    expect((await readKey({ armoredKey: block })).subkeys).toHaveLength(150);
    const blocks = Array.from({ length: 20 }, () => block);
    expect(await verdictOf(armour, blocks)).toMatchObject({ kind: "verified", fingerprint: bot.fingerprint });
  });

  test("a stranger's subkey that is put into a trusted key does not sign for it", async () => {
    const stranger = await pgpKey({ signingSubkey: true });
    const trusted = await readKey({ armoredKey: bot.publicKey });
    const other = await readKey({ armoredKey: stranger.publicKey });
    const [stolen] = other.subkeys;
    if (stolen === undefined) throw new Error("the key has no subkey");
    const bytes = Buffer.concat([
      trusted.write(),
      packet(14, Buffer.from((stolen.keyPacket as PublicSubkeyPacket).write())),
      ...stolen.bindingSignatures.map((binding) => packet(2, Buffer.from(binding.write()))),
    ]);
    const signed = await signDetached("x", [stranger]);
    const verdict = await verdictOf(signed, [armoured("PUBLIC KEY BLOCK", bytes)]);
    expect(verdict.kind).toBe("invalid");
  });

  test.each<[string, string | (() => string)]>([
    ["a text", "no key"],
    [
      "a bomb",
      () =>
        armoured("PUBLIC KEY BLOCK", packet(8, Buffer.concat([Buffer.from([1]), deflateRawSync(Buffer.alloc(1e7))]))),
    ],
    ["half a key", () => bot.publicKey.slice(0, 200)],
  ])("%s among the keys does not keep the right one from counting", async (_what, other) => {
    const hostile = typeof other === "string" ? other : other();
    expect(await verdictOf(armour, [hostile, bot.publicKey])).toMatchObject({ kind: "verified" });
    expect(await verdictOf(armour, [hostile])).toEqual({ kind: "unknown", key: bot.fingerprint });
  });
});

describe("clear-signed messages", () => {
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom("", "- x", "-----BEGIN PGP SIGNATURE-----", "...", " \t", "ä\u2028", "x \t", "\uFEFF"),
  );
  const texts = fc
    .array(line)
    .map((lines) => lines.join("\n"))
    .filter((text) => text !== "" && !text.includes("\r"));

  test("every text that openpgp signs is read as it was signed, and verified", async () => {
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const signed = readClearSigned(await clearSign(text, bot));
        expect(signed?.text).toBe(text.replaceAll(/[ \t]+(?=\n|$)/g, ""));
        const content = signed?.text ?? "";
        const asked = { content, armour: signed?.armour ?? "" };
        expect(await verifyPgp(asked, [bot.publicKey], new Date())).toMatchObject({ kind: "verified" });
        const changed = await verifyPgp({ ...asked, content: `${content}.` }, [bot.publicKey], new Date());
        expect(changed).toMatchObject({ kind: "invalid" });
      }),
      { numRuns: 100 },
    );
  });

  test("no text ends in an error, and none without both markers is a message", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(readClearSigned(text)).toBeUndefined();
        readClearSigned(`-----BEGIN PGP SIGNED MESSAGE-----\n${text}\n-----END PGP SIGNATURE-----`);
        expect(readProvenance(text)).toBeUndefined();
        readProvenance(`name: a\nversion: 1\n...\nfiles:\n${text}`);
      }),
      { numRuns: 300 },
    );
  });
});
