import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { signedCommit, signedTag, tagName } from "#shared/source/signatures/signed-object.ts";
import { parseSshKey, type SshPublicKey } from "#shared/source/signatures/ssh-key.ts";
import { verifySshSignature } from "#shared/source/signatures/ssh-signature.ts";
import { wireBytes } from "#shared/source/signatures/wire-reader.ts";

interface Pair {
  readonly line: string;
  readonly key: SshPublicKey;
  readonly secret: KeyObject;
}

function known(line: string): SshPublicKey {
  const key = parseSshKey(line);
  if (typeof key === "string") throw new Error(key);
  return key;
}

function ed25519(): Pair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  const wire = Buffer.concat([wireBytes("ssh-ed25519"), wireBytes(Buffer.from(x, "base64url"))]);
  const line = `ssh-ed25519 ${wire.toString("base64")} bot@acme.io`;
  return { line, key: known(line), secret: privateKey };
}

function rsaLine(bits: number): string {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: bits });
  const { e = "", n = "" } = publicKey.export({ format: "jwk" });
  const positive = Buffer.concat([Buffer.from([0]), Buffer.from(n, "base64url")]);
  const wire = Buffer.concat([wireBytes("ssh-rsa"), wireBytes(Buffer.from(e, "base64url")), wireBytes(positive)]);
  return `ssh-rsa ${wire.toString("base64")}`;
}

/** A signature that says these things about itself. */
function signature(
  content: string,
  { key, secret }: Pair,
  { namespace = "git", hash = "sha512", algorithm = "ssh-ed25519", rest = "" } = {},
): string {
  const digest = createHash(hash).update(content).digest();
  const parts = [namespace, "", hash];
  const signed = Buffer.concat([Buffer.from("SSHSIG"), ...parts.map(wireBytes), wireBytes(digest)]);
  const made = Buffer.concat([wireBytes(algorithm), wireBytes(sign(null, signed, secret))]);
  const bytes = Buffer.concat([
    ...[Buffer.from("SSHSIG"), Buffer.from([0, 0, 0, 1]), wireBytes(key.wire), ...parts.map(wireBytes)],
    ...[wireBytes(made), Buffer.from(rest)],
  ]);
  return `-----BEGIN SSH SIGNATURE-----\n${bytes.toString("base64")}\n-----END SSH SIGNATURE-----\n`;
}

describe("an SSH signature", () => {
  const pair = ed25519();
  const verify = (armour: string, content = "x") => verifySshSignature(Buffer.from(content), armour, [pair.key]);

  test("a signature of a trusted key over the content is verified", () => {
    expect(verify(signature("x", pair))).toEqual({ kind: "verified", key: pair.key });
    expect(verify(signature("x", pair, { hash: "sha256" }))).toMatchObject({ kind: "verified" });
  });

  test.each([
    ["for another purpose", { namespace: "file" }, 'is for "file", not for git'],
    ["of another algorithm", { algorithm: "ssh-rsa" }, "uses ssh-rsa, which is not accepted"],
    ["with something behind it", { rest: "more" }, "is damaged"],
  ])("a signature %s is refused", (_legend, made, problem) => {
    expect(verify(signature("x", pair, made))).toEqual({ kind: "invalid", problem });
  });

  test("a signature over SHA-1 is refused as weak [source.verify.weak]", () => {
    const problem = "uses the hash sha1, which is not accepted";
    expect(verify(signature("x", pair, { hash: "sha1" }))).toEqual({ kind: "weak", problem });
  });

  test("a signature over another content is refused", () => {
    expect(verify(signature("x", pair), "y")).toMatchObject({ kind: "invalid" });
  });

  test("every cut and every changed byte of a signature is refused", () => {
    const armour = signature("x", pair);
    const [begin = "", encoded = "", end = ""] = armour.split("\n");
    const bytes = Buffer.from(encoded, "base64");
    const armoured = (content: Buffer) => [begin, content.toString("base64"), end, ""].join("\n");
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(verify(armoured(changed)).kind).not.toBe("verified");
      expect(verify(armoured(bytes.subarray(0, at))).kind).not.toBe("verified");
    }
  });
});

describe("the signature in an object of git", () => {
  const armour = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----";
  const header = `gpgsig ${armour.replaceAll("\n", "\n ")}\n`;

  test("a commit signs everything except the header of its signature", () => {
    const [before, after] = ["tree 1\nauthor A\n", "encoding x\n\nText\ngpgsig no\n \xe9\n"];
    const found = signedCommit(Buffer.from(before + header + after, "latin1"));
    expect(found?.armour).toBe(`${armour}\n`);
    expect(found?.content.toString("latin1")).toBe(before + after);
  });

  test("a second header of a signature is a part of what is signed", () => {
    expect(signedCommit(Buffer.from(`tree 1\n${header}${header}\nText\n`))?.content.toString()).toBe(
      `tree 1\n${header}\nText\n`,
    );
  });

  test("a signature in the text of a commit does not count [source.verify.changed]", () => {
    expect(signedCommit(Buffer.from(`tree 1\n\n${header}`))).toBeUndefined();
    expect(signedCommit(Buffer.from("tree 1\n"))).toBeUndefined();
  });

  test("the last signature of a tag counts, at the begin of a line only", () => {
    const text = `object 1\ntag v1\n\n${armour}\nno ${armour}\n`;
    const found = signedTag(Buffer.from(`${text}${armour}\n`));
    expect(found?.content.toString()).toBe(text);
    expect(found?.armour).toBe(`${armour}\n`);
    expect(signedTag(Buffer.from(`tag v1\n\r${armour}`))).toBeUndefined();
  });

  test("a tag's name is that of its headers", () => {
    expect(tagName(Buffer.from("object 1\ntype commit\ntag v1.0.0\ntagger A\n\ntag v2\n"))).toBe("v1.0.0");
    expect(tagName(Buffer.from("object 1\n\ntag v2\n"))).toBe("");
  });
});

describe("spec.git.verify", () => {
  function problems(verify: unknown, ref?: unknown): readonly string[] {
    const metadata = { name: "web", namespace: "shop" };
    const spec = { git: { url: "https://git.example/app", ref, verify } };
    const parsed = parseDocument({ apiVersion: "starling.dev/v1alpha1", kind: "Source", metadata, spec });
    const found = parsed.ok ? semanticProblems(parsed.document) : parsed.problems;
    return found.map(({ field, message }) => `${field} ${message}`);
  }
  const { line } = ed25519();

  test("public keys of SSH are taken, with and without their comment", () => {
    expect(problems({ mode: "HEAD", keys: [line, line.replace(" bot@acme.io", ""), rsaLine(2048)] })).toEqual([]);
  });

  test.each([
    ["AAAA", "is no public key"],
    [
      "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA",
      "is a private key: revoke it, and give the public key of another one",
    ],
    ["ssh-ed25519 AAAA", "is damaged: copy the whole line"],
    [line.slice(0, -20), "is damaged: copy the whole line"],
    [line.replace("ssh-ed25519", "ssh-rsa"), "is damaged: copy the whole line"],
    ["sk-ssh-ed25519@openssh.com AAAA", "is a key of a security key, which Starling cannot verify; use another key"],
    ["ssh-ed25519-cert-v01@openssh.com AAAA", "is a certificate, which Starling cannot verify"],
    [rsaLine(1024), "has 1024 bits; expected at least 2048"],
  ])("the key %s is refused", (key, message) => {
    expect(problems({ mode: "HEAD", keys: [line, key] })).toEqual([
      expect.stringContaining(`spec.git.verify.keys[1] ${message}`),
    ]);
  });

  const block = readFileSync("docs/spec/source.md", "utf8")
    .match(/-----BEGIN PGP PUBLIC[\s\S]+?END PGP PUBLIC KEY BLOCK-----/)?.[0]
    .replaceAll("\n          ", "\n");
  const pgpKey = block ?? "";

  test("public keys of OpenPGP are taken beside those of SSH, with headers and another end of line", () => {
    const withHeaders = pgpKey.replace("\n", "\nComment: release bot\n");
    const keys = [pgpKey, line, withHeaders, `\n${pgpKey.replaceAll("\n", "\r\n")}\r\n`];
    expect(problems({ mode: "HEAD", keys })).toEqual([]);
  });

  test.each([
    [pgpKey.replaceAll("PUBLIC", "PRIVATE"), "is a private key: revoke it"],
    [pgpKey.replace("PUBLIC KEY BLOCK", "SIGNATURE"), "is no public key; expected what gpg --armor --export prints"],
    [pgpKey.slice(0, -20), "is not one whole public key"],
    [`${pgpKey}\n${pgpKey}`, "is not one whole public key; give each block"],
    [`${pgpKey}\nmore`, "is not one whole public key"],
    [pgpKey.replace("\nmDME", "\n!DME"), "is damaged: copy all"],
    [pgpKey.replace("\nmDME", "\nlDME"), "is damaged: copy all"],
    ["-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n-----END PGP PUBLIC KEY BLOCK-----", "is damaged: copy all"],
    [pgpKey.replace("\n\n", `\n\n${"A".repeat(16_384)}\n`), "must have at most 16384 characters"],
  ])("the OpenPGP key %j is refused", (key, message) => {
    expect(problems({ mode: "HEAD", keys: [line, key] })).toEqual([
      expect.stringContaining(`spec.git.verify.keys[1] ${message}`),
    ]);
  });

  test.each([undefined, { branch: "main" }, { commit: "4be8a9034f1c2d5e6a7b8c9d0e1f2a3b4c5d6e7f" }])(
    "a mode of tags is refused for the reference %j [source.verify.mode]",
    (ref) => {
      const message =
        "spec.git.verify.mode verifies a tag, and the Source follows none: set ref.tag or ref.semver, or use HEAD";
      for (const mode of ["Tag", "TagAndHEAD"]) {
        expect(problems({ mode, keys: [line] }, ref)).toEqual([expect.stringContaining(message)]);
      }
      expect(problems({ mode: "HEAD", keys: [line] }, ref)).toEqual([]);
    },
  );

  test.each([{ tag: "v1" }, { semver: ">=1" }])("a mode of tags is taken for %j", (ref) => {
    expect(problems({ mode: "TagAndHEAD", keys: [line] }, ref)).toEqual([]);
  });
});
