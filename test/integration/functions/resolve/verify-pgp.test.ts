import { enums, type SecretKeyPacket } from "openpgp";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { extendedKey, type PgpKey, pgpKey, revokedKey, signDetached, signWith } from "#test/support/pgp-keys.ts";
import { canSign, gpgSigner, type Signer, sshSigner } from "#test/support/signed-repository.ts";
import { conditionsOf, expectRefused as refusedBy, signedSources } from "#test/support/signed-sources.ts";

const hasGpg = canSign("gpg");
const at = signedSources();
const expectRefused = (reason: string, message: string) => refusedBy(at, reason, message);
let bot: PgpKey;

beforeAll(async () => {
  bot = await pgpKey();
});

// A key is valid at a time.
beforeEach(() => {
  at.world.now = new Date();
});

/** Commits, and signs the commit with keys of the package. @returns its id. */
async function commitSigned(content: string, sign: (commit: string) => Promise<string>): Promise<string> {
  at.made.commit(content);
  let raw = "";
  at.made.replace("refs/heads/main", "commit", (commit) => {
    raw = commit;
    return commit;
  });
  return withHeader(raw, await sign(raw));
}

function withHeader(commit: string, armour: string): string {
  const header = `gpgsig ${armour.trimEnd().replaceAll(/\r?\n/g, "\n ")}`;
  return at.made.replace("refs/heads/main", "commit", () => commit.replace("\n\n", `\n${header}\n\n`));
}

const signedBy =
  (keys: readonly PgpKey[], options: { before?: number } = {}) =>
  (commit: string) =>
    signDetached(commit, keys, options);

async function expectVerified(message: string): Promise<void> {
  const row = await at.world.resolve();
  expect(conditionsOf(row)).toMatchObject({
    Ready: { status: "True" },
    SourceVerified: { status: "True", reason: "Succeeded", message },
  });
  expect(row.status.artifact?.verified?.at).toBe(at.world.now.toISOString());
}

describe.skipIf(!hasGpg)("signatures of GnuPG (with gpg)", () => {
  let ana: Signer;
  beforeAll(() => {
    ana = gpgSigner("Ana Botta <ana@acme.io>");
  });

  test.each(["ed25519", "rsa3072"] as const)(
    "a commit that gpg signed with a key of %s is stored [source.verify.commit]",
    async (type) => {
      const signer = gpgSigner("Bo <bo@acme.io>", { type });
      const oid = at.made.commit("a: 1", signer);
      await at.world.put(at.specOf("HEAD", [bot.publicKey, signer.publicKey]));
      await expectVerified(`verified commit ${oid} with the key ${signer.key} of Bo <bo@acme.io> (mode HEAD)`);
      expect(at.fetched).toEqual([`${oid} `, `${oid} .`]);
    },
  );

  test("a tag that gpg signed is stored, and a changed one, another name and a lightweight tag are refused", async () => {
    const oid = at.made.commit("a: 1");
    at.made.tag("v1.0.0", "lightweight");
    await at.world.put(at.specOf("Tag", [ana.publicKey], { semver: ">=1" }));
    await expectRefused("TagNotAnnotated", "tag v1.0.0 of");
    at.made.tag("v1.0.0", "annotated");
    await expectRefused("SignatureMissing", "is not signed; make it with git tag -s");
    const signed = at.made.tag("v1.0.0", ana);
    await expectVerified(`verified tag v1.0.0 with the key ${ana.key} of Ana Botta <ana@acme.io> (mode Tag)`);
    expect((await at.world.resolve()).status.artifact?.revision).toBe(`v1.0.0@sha1:${oid}`);
    at.made.git("update-ref", "refs/tags/v1.0.1", signed);
    at.made.replace("refs/tags/v1.0.1", "tag", (tag) => tag);
    await expectRefused("SignatureInvalid", "was signed under the name v1.0.0");
    at.made.replace("refs/tags/v1.0.1", "tag", (tag) => tag.replace("Ana", "Eve"));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test.skipIf(!canSign("ssh-keygen"))(
    "OpenPGP and SSH keys stand beside each other, and each signature finds its own",
    async () => {
      const ssh = sshSigner("ed25519");
      const oid = at.made.commit("a: 1", ssh);
      at.made.tag("v1.0.0", ana);
      await at.world.put(at.specOf("TagAndHEAD", [ssh.publicKey, ana.publicKey], { tag: "v1.0.0" }));
      const { artifact } = await at.world.resolve().then(({ status }) => status);
      expect(artifact?.verified).toEqual({
        at: at.world.now.toISOString(),
        mode: "TagAndHEAD",
        signatures: [
          { object: "tag v1.0.0", key: ana.key, owner: "Ana Botta <ana@acme.io>" },
          { object: `commit ${oid}`, key: expect.stringMatching(/^SHA256:/), owner: "bot@acme.io" },
        ],
      });
      // A key of the other form does not help.
      await at.world.put(at.specOf("TagAndHEAD", [ssh.publicKey], { tag: "v1.0.0" }));
      await expectRefused("SignatureKeyUnknown", `is signed with the OpenPGP key ${ana.key}, which is not trusted`);
    },
  );

  test("gpg and Starling agree about a commit with one changed byte", async () => {
    at.made.commit("a: 1", ana);
    at.made.replace("refs/heads/main", "commit", (commit) => commit.replace("Change a", "Change b"));
    await at.world.put(at.specOf("HEAD", [ana.publicKey]));
    await expectRefused("SignatureInvalid", "does not fit its content: it was changed after it was signed");
    at.made.commit("a: 2", ana);
    expect(conditionsOf(await at.world.resolve()).SourceVerified?.status).toBe("True");
  });
});

describe("signatures of keys that do not count", () => {
  test("a commit of an unknown key is refused with its fingerprint [source.verify.unknown-key]", async () => {
    const stranger = await pgpKey();
    const oid = await commitSigned("a: 1", signedBy([stranger]));
    await at.world.put(at.specOf("HEAD", [bot.publicKey]));
    await expectRefused(
      "SignatureKeyUnknown",
      `commit ${oid} of ${at.url} is signed with the OpenPGP key ${stranger.fingerprint}, which is not trusted`,
    );
  });

  test("a key that has expired is refused, also for what it signed before, until it is extended [source.verify.expired]", async () => {
    const old = await pgpKey({ madeBefore: 20, validFor: 10 });
    await commitSigned("a: 1", signedBy([old], { before: 15 }));
    await at.world.put(at.specOf("HEAD", [old.publicKey]));
    const day = new Date(Date.now() - 10 * 86_400_000).toISOString().slice(0, 10);
    await expectRefused("SignatureKeyExpired", `the key ${old.fingerprint}, which expired on ${day}, since then`);
    const extended = await extendedKey(old, 30);
    at.world.now = new Date();
    await at.world.put(at.specOf("HEAD", [old.publicKey, extended.publicKey]));
    expect(conditionsOf(await at.world.resolve()).SourceVerified?.status).toBe("True");
  });

  test("a signature that a key made after it had expired is refused", async () => {
    const old = await pgpKey({ madeBefore: 20, validFor: 10 });
    const stillValid = await extendedKey(old, 30);
    await commitSigned("a: 1", signedBy([stillValid]));
    await at.world.put(at.specOf("HEAD", [old.publicKey]));
    await expectRefused("SignatureKeyExpired", "before it signed");
  });

  test("a verified revision stays when its key expires, and the next one is refused [source.verify.expired]", async () => {
    const key = await pgpKey({ madeBefore: 1, validFor: 2 });
    await commitSigned("a: 1", signedBy([key]));
    await at.world.put(at.specOf("HEAD", [key.publicKey]));
    await at.world.resolve();
    at.world.passDays(3);
    expect(conditionsOf(await at.world.resolve())).toMatchObject({
      Ready: { status: "True" },
      SourceVerified: { status: "True" },
    });
    await commitSigned("a: 2", signedBy([key]));
    await expectRefused("SignatureKeyExpired", key.fingerprint);
  });

  test.each([
    ["that was stolen", enums.reasonForRevocation.keyCompromised],
    ["that was replaced", enums.reasonForRevocation.keySuperseded],
  ])("a revoked key %s is refused, whenever it signed [source.verify.revoked]", async (_legend, flag) => {
    const key = await pgpKey({ madeBefore: 20 });
    await commitSigned("a: 1", signedBy([key], { before: 10 }));
    await at.world.put(at.specOf("HEAD", [key.publicKey]));
    expect(conditionsOf(await at.world.resolve()).SourceVerified?.status).toBe("True");
    const revoked = await revokedKey(key, { flag });
    at.world.now = new Date();
    await at.world.put(at.specOf("HEAD", [revoked.publicKey]));
    await expectRefused("SignatureKeyRevoked", `the key ${key.fingerprint}, which is revoked`);
  });

  test("a signature of a signing subkey counts with the name of its key, until the subkey is revoked [source.verify.revoked]", async () => {
    const key = await pgpKey({ signingSubkey: true, madeBefore: 3 });
    const oid = await commitSigned("a: 1", signedBy([key]));
    await at.world.put(at.specOf("HEAD", [key.publicKey]));
    await expectVerified(`verified commit ${oid} with the key ${key.fingerprint} of Ana <ana@acme.io> (mode HEAD)`);
    const [subkey] = key.secret.subkeys;
    if (subkey === undefined) throw new Error("the key has no subkey");
    key.secret.subkeys = [await subkey.revoke(key.secret.keyPacket as SecretKeyPacket)];
    await at.world.put(at.specOf("HEAD", [key.secret.toPublic().armor()]));
    await expectRefused("SignatureKeyRevoked", key.fingerprint);
  });

  test("a short key of RSA is refused", async () => {
    const short = await pgpKey({ rsaBits: 1024 });
    await commitSigned("a: 1", signedBy([short]));
    await at.world.put(at.specOf("HEAD", [short.publicKey]));
    await expectRefused("SignatureInvalid", "does not count (");
  });
});

describe("signatures that do not count", () => {
  test("a signature over SHA-1 is refused as weak [source.verify.weak]", async () => {
    const rsa = await pgpKey({ rsaBits: 2048 });
    await commitSigned("a: 1", (commit) => signWith(commit, rsa, enums.hash.sha1));
    await at.world.put(at.specOf("HEAD", [rsa.publicKey]));
    await expectRefused("SignatureWeak", "has a signature that uses SHA-1, which is not accepted");
  });

  test("two signatures are refused, also when the second one is of a trusted key [source.verify.changed]", async () => {
    const stranger = await pgpKey();
    await commitSigned("a: 1", signedBy([bot, stranger]));
    await at.world.put(at.specOf("HEAD", [bot.publicKey, stranger.publicKey]));
    await expectRefused("SignatureInvalid", "is more than one signature");
  });

  test("a signature over another commit is refused", async () => {
    await commitSigned("a: 1", (commit) => signDetached(commit.replace("Change a", "Change b"), [bot]));
    await at.world.put(at.specOf("HEAD", [bot.publicKey]));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test("a signature of the future is refused, and a clock that is two minutes ahead is forgiven [source.verify.changed]", async () => {
    await at.world.put(at.specOf("HEAD", [bot.publicKey]));
    await commitSigned("a: 1", signedBy([bot], { before: -1 }));
    await expectRefused("SignatureInvalid", "in the future");
    await commitSigned("a: 2", signedBy([bot], { before: -2 / 1440 }));
    expect(conditionsOf(await at.world.resolve()).SourceVerified?.status).toBe("True");
  });

  test.each([
    ["is damaged", (armour: string) => armour.replace(/\n\n./, "\n\n!")],
    ["is damaged", () => "-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----"],
    ["is damaged", () => "-----BEGIN PGP MESSAGE-----\n\nyxJiAAAAAABoZWxsbw==\n-----END PGP MESSAGE-----"],
    [
      "of a form that Starling does not verify",
      () => "-----BEGIN SIGNED MESSAGE-----\nAA\n-----END SIGNED MESSAGE-----",
    ],
    ["has more than 16384 characters", (armour: string) => armour.replace("\n\n", `\n\n${"A".repeat(20_000)}\n`)],
  ])("an armour is refused with: %s", async (problem, change) => {
    await commitSigned("a: 1", async (commit) => change(await signDetached(commit, [bot])));
    await at.world.put(at.specOf("HEAD", [bot.publicKey]));
    await expectRefused("SignatureInvalid", problem);
  });
});
