import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { simpleClaim, statementClaim } from "#shared/source/signatures/cosign-claim.ts";
import { parseCosignKey } from "#shared/source/signatures/cosign-key.ts";
import { trustedRootProblem } from "#shared/source/signatures/trusted-root.ts";

const digest = `sha256:${"a".repeat(64)}`;
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const pem = (key: ReturnType<typeof generateKeyPairSync>["publicKey"]) =>
  key.export({ type: "spki", format: "pem" }).toString();

describe("a key of cosign", () => {
  test("the fingerprint of a key and its hint in bundles are the same digest", () => {
    const key = parseCosignKey(pem(generateKeyPairSync("ed25519").publicKey));
    expect(key).toMatchObject({ fingerprint: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), hashes: [undefined] });
    const { fingerprint, hint } = key as Exclude<typeof key, string>;
    expect(`sha256:${Buffer.from(hint, "base64").toString("hex")}`).toBe(fingerprint);
  });

  test.each([
    [
      "a short RSA key",
      pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey),
      "is an RSA key of 1024 bits",
    ],
    [
      "a key on another curve",
      pem(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey),
      "is a key on the curve secp256k1, which Starling cannot verify",
    ],
    ["a key of another type", pem(generateKeyPairSync("x25519").publicKey), "is a key of the type x25519"],
    [
      "a private key",
      generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      "is a private key: revoke it",
    ],
    ["a certificate", "-----BEGIN CERTIFICATE-----", "is no public key; expected the text of cosign.pub"],
  ])("%s is refused by name", (_, text, problem) => {
    expect(parseCosignKey(text)).toContain(problem);
  });
});

describe("a signed text", () => {
  const simple = (type: string, named: string) => ({ critical: { type, image: { "docker-manifest-digest": named } } });
  const statement = (more: object) => ({
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://sigstore.dev/cosign/sign/v1",
    subject: [{ digest: { sha256: "a".repeat(64) } }],
    ...more,
  });

  test.each([["cosign container image signature"], ["https://sigstore.dev/cosign/sign/v1"]])(
    "a text of the type %s names its artifact",
    (type) => {
      expect(simpleClaim(bytes(simple(type, digest)))).toEqual([digest]);
    },
  );

  test("a statement without a predicate names its artifact, as cosign 3.0.0 to 3.0.4 write it", () => {
    expect(statementClaim(bytes(statement({})))).toEqual([digest]);
  });

  test.each([
    ["a text that is no JSON", simpleClaim(bytes("{")), "is not JSON"],
    ["bytes that are no text", simpleClaim(Buffer.from([0xff])), "is not JSON"],
    [
      "a digest of another kind",
      simpleClaim(bytes(simple("cosign container image signature", "md5:1"))),
      "names no digest",
    ],
    [
      "a text of another type",
      simpleClaim(bytes(simple("atomic container signature", digest))),
      "is of the type atomic",
    ],
    ["a statement of another form", statementClaim(bytes(statement({ _type: "x" }))), "is no statement"],
    ["an attestation", statementClaim(bytes(statement({ predicateType: "https://slsa.dev/x" }))), "is an attestation"],
    ["a statement with a member twice", statementClaim(bytes('{"a":1,"a":2}')), "has a member twice"],
  ])("%s claims nothing", (_, claim, problem) => {
    expect(claim).toEqual(expect.stringContaining(problem));
  });
});

describe("a trusted root", () => {
  const root = (parts: object) =>
    JSON.stringify({
      mediaType: "application/vnd.dev.sigstore.trustedroot.v0.2+json",
      certificateAuthorities: [{}],
      ...parts,
    });

  test.each([{ tlogs: [{}] }, { timestampAuthorities: [{}] }])("a root with %j is taken", (parts) => {
    expect(trustedRootProblem(root(parts))).toBeUndefined();
  });

  test.each([
    ["a root without authorities", root({ tlogs: [{}], certificateAuthorities: [] }), "has no certificateAuthorities"],
    ["a root without a log and a clock", root({}), "has neither tlogs nor timestampAuthorities"],
    ["a list", "[]", "is no trusted root"],
    ["a text that is no JSON", "trusted_root.json", "is not JSON"],
  ])("%s is refused", (_, text, problem) => {
    expect(trustedRootProblem(text)).toContain(problem);
  });
});
