import { beforeAll, describe, expect, test } from "vitest";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { canSign, type Signer, sshSigner } from "#test/support/signed-repository.ts";
import { conditionsOf, expectRefused as refusedBy, signedSources } from "#test/support/signed-sources.ts";

const hasKeygen = canSign("ssh-keygen");
const at = signedSources();
let bot: Signer;
let stranger: Signer;

beforeAll(() => {
  if (!hasKeygen) return;
  bot = sshSigner("ed25519");
  stranger = sshSigner("ed25519");
});

const specOf = (mode: string, keys: readonly Signer[], ref?: object) =>
  at.specOf(
    mode,
    keys.map(({ publicKey }) => publicKey),
    ref,
  ) as { readonly git: { readonly verify: unknown } };

const expectRefused = (reason: string, message: string) => refusedBy(at, reason, message);

function fingerprintOf({ publicKey }: Signer): string {
  const key = parseSshKey(publicKey);
  if (typeof key === "string") throw new Error(key);
  return key.fingerprint;
}

describe.skipIf(!hasKeygen)("a Source that verifies commits (with ssh-keygen)", () => {
  test.each(["ed25519", "ecdsa", "ecdsa521", "rsa"] as const)(
    "a commit of a trusted %s key is stored [source.verify.commit]",
    async (type) => {
      const signer = sshSigner(type);
      const oid = at.made.commit("a: 1", signer);
      await at.world.put(specOf("HEAD", [stranger, signer]));
      const row = await at.world.resolve();
      expect(conditionsOf(row)).toMatchObject({
        Ready: { status: "True" },
        SourceVerified: {
          status: "True",
          reason: "Succeeded",
          message: `verified commit ${oid} with the key ${fingerprintOf(signer)} of bot@acme.io (mode HEAD)`,
        },
      });
      expect((await at.world.files()).map(({ path }) => path)).toEqual(["a.yaml"]);
      expect(at.fetched).toEqual([`${oid} `, `${oid} .`]);
      await at.world.resolve();
      expect(at.fetched).toHaveLength(2);
    },
  );

  test("a commit without a signature is refused, and the last good one stays [source.verify.last-good]", async () => {
    const good = at.made.commit("a: 1", bot);
    await at.world.put(specOf("HEAD", [bot]));
    await at.world.resolve();
    const oid = at.made.commit("a: 2");
    await expectRefused("SignatureMissing", `commit ${oid} of ${at.url} is not signed`);
    expect((await at.world.resolve()).status.artifact?.revision).toBe(`main@sha1:${good}`);
    // The refused commit is not fetched again.
    expect(at.fetched.filter((each) => each.startsWith(oid))).toHaveLength(1);
    at.made.commit("a: 3", bot);
    expect(conditionsOf(await at.world.resolve())).toMatchObject({
      Ready: { status: "True" },
      SourceVerified: { status: "True" },
    });
  });

  test("a commit of another key is refused with its fingerprint [source.verify.unknown-key]", async () => {
    at.made.commit("a: 1", stranger);
    await at.world.put(specOf("HEAD", [bot]));
    await expectRefused(
      "SignatureKeyUnknown",
      `is signed with the key ${fingerprintOf(stranger)}, which is not trusted`,
    );
  });

  test("a signed commit with one changed byte is refused [source.verify.changed]", async () => {
    at.made.commit("a: 1", bot);
    at.made.replace("refs/heads/main", "commit", (commit) => commit.replace("Change a", "Change b"));
    await at.world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "does not fit its content: it was changed after it was signed");
  });

  test("a signature that was moved to a commit of other files is refused [source.verify.changed]", async () => {
    at.made.commit("a: 1", bot);
    const signature = /gpgsig (?:.*\n)(?: .*\n)*/.exec(at.made.git("cat-file", "commit", "HEAD"))?.[0] ?? "";
    at.made.commit("evil: 1");
    at.made.replace("refs/heads/main", "commit", (commit) => commit.replace("\n\n", `\n${signature}\n`));
    await at.world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test("a signature that is damaged is refused", async () => {
    at.made.commit("a: 1", bot);
    at.made.replace("refs/heads/main", "commit", (commit) => commit.replace("U1NIU0lH", "U1NIU0lI"));
    await at.world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "has a signature that is damaged");
  });

  test("during a rotation both keys count, and removing one verifies the present commit again [source.verify.again]", async () => {
    const old = sshSigner("rsa");
    at.made.commit("a: 1", old);
    await at.world.put(specOf("HEAD", [old, bot]));
    const { artifact } = (await at.world.resolve()).status;
    await at.world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureKeyUnknown", `${fingerprintOf(old)}, which is not trusted`);
    expect((await at.world.resolve()).status.artifact).toEqual(artifact);
    at.made.commit("a: 2", bot);
    expect(conditionsOf(await at.world.resolve())).toMatchObject({ SourceVerified: { status: "True" } });
    expect((await at.world.resolve()).status.artifact?.digest).not.toBe(artifact?.digest);
  });

  test("verification that is switched on later verifies the present commit, and one that is switched off says nothing [source.verify.again]", async () => {
    at.made.commit("a: 1");
    const { git } = specOf("HEAD", [bot]);
    const { verify: _verify, ...open } = git;
    await at.world.put({ git: open });
    expect(Object.keys(conditionsOf(await at.world.resolve()))).toEqual(["Ready", "ArtifactInStorage"]);
    await at.world.put({ git });
    await expectRefused("SignatureMissing", "is not signed");
    at.made.commit("a: 2", bot);
    expect(Object.keys(conditionsOf(await at.world.resolve()))).toEqual([
      "Ready",
      "ArtifactInStorage",
      "SourceVerified",
    ]);
    await at.world.put({ git: open });
    expect(Object.keys(conditionsOf(await at.world.resolve()))).toEqual(["Ready", "ArtifactInStorage"]);
  });

  test("a git server that is away leaves the last word about the signature [source.verify.away]", async () => {
    at.made.commit("a: 1", bot);
    await at.world.put(specOf("HEAD", [bot]));
    await at.world.resolve();
    at.world.git = {
      listRefs: () => Promise.reject(new Error("away")),
      fetchTree: () => Promise.reject(new Error("away")),
    };
    expect(conditionsOf(await at.world.resolve())).toMatchObject({
      Ready: { status: "False" },
      SourceVerified: { status: "True", reason: "Succeeded" },
    });
  });

  test("an artifact that was lost is stored again only after another verification [source.verify.again]", async () => {
    at.made.commit("a: 1", bot);
    await at.world.put(specOf("HEAD", [bot]));
    await at.world.resolve();
    at.world.passDays(90);
    await at.world.resolve();
    const oid = at.made.git("rev-parse", "HEAD");
    expect((await at.world.files()).map(({ path }) => path)).toEqual(["a.yaml"]);
    expect(at.fetched).toEqual([`${oid} `, `${oid} .`, `${oid} `, `${oid} .`]);
  });
});

describe.skipIf(!hasKeygen)("a Source that verifies tags (with ssh-keygen)", () => {
  const version = { semver: ">=1" };

  test("a signed tag of an unsigned commit is stored [source.verify.tag]", async () => {
    const oid = at.made.commit("a: 1");
    at.made.tag("v1.0.0", bot);
    await at.world.put(specOf("Tag", [bot], version));
    const row = await at.world.resolve();
    expect(row.status.artifact?.revision).toBe(`v1.0.0@sha1:${oid}`);
    expect(conditionsOf(row).SourceVerified).toEqual({
      status: "True",
      reason: "Succeeded",
      message: `verified tag v1.0.0 with the key ${fingerprintOf(bot)} of bot@acme.io (mode Tag)`,
    });
    await at.world.resolve();
    expect(at.fetched).toHaveLength(2);
  });

  test("a signed tag that the Source names in full is stored [source.verify.tag]", async () => {
    const oid = at.made.commit("a: 1");
    at.made.tag("v1.0.0", bot);
    await at.world.put(specOf("Tag", [bot], { name: "refs/tags/v1.0.0" }));
    expect((await at.world.resolve()).status.artifact?.revision).toBe(`refs/tags/v1.0.0@sha1:${oid}`);
  });

  test("a lightweight tag is refused, until a signed tag takes its place at the same commit [source.verify.lightweight]", async () => {
    at.made.commit("a: 1", bot);
    at.made.tag("v1.0.0", "lightweight");
    await at.world.put(specOf("Tag", [bot], { tag: "v1.0.0" }));
    await expectRefused("TagNotAnnotated", "tag v1.0.0 of");
    at.made.tag("v1.0.0", "annotated");
    await expectRefused("SignatureMissing", "is not signed; make it with git tag -s");
    at.made.tag("v1.0.0", stranger);
    await expectRefused("SignatureKeyUnknown", fingerprintOf(stranger));
    at.made.tag("v1.0.0", bot);
    expect(conditionsOf(await at.world.resolve())).toMatchObject({ Ready: { status: "True" } });
    at.made.tag("v1.0.0", "annotated");
    await expectRefused("SignatureMissing", "is not signed");
  });

  test("a signed tag with one changed byte is refused [source.verify.changed]", async () => {
    at.made.commit("a: 1");
    at.made.tag("v1.0.0", bot);
    at.made.replace("refs/tags/v1.0.0", "tag", (tag) => tag.replace("Ana", "Eve"));
    await at.world.put(specOf("Tag", [bot], version));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test("a signed tag that is pushed again as a higher version is refused [source.verify.changed]", async () => {
    at.made.commit("a: 1");
    const old = at.made.tag("v1.0.0", bot);
    at.made.commit("a: 2");
    at.made.git("update-ref", "refs/tags/v1.0.1", old);
    at.made.tag("v1.0.0", bot);
    at.made.replace("refs/tags/v1.0.1", "tag", (tag) => tag);
    await at.world.put(specOf("Tag", [bot], version));
    await expectRefused("SignatureInvalid", "tag v1.0.1 of");
    expect(conditionsOf(await at.world.resolve()).Ready?.message).toContain("was signed under the name v1.0.0");
  });

  test("a stricter mode verifies the present commit too, and needs both signatures [source.verify.both]", async () => {
    at.made.commit("a: 1");
    at.made.tag("v1.0.0", bot);
    await at.world.put(specOf("Tag", [bot], version));
    await at.world.resolve();
    await at.world.put(specOf("TagAndHEAD", [bot], version));
    await expectRefused("SignatureMissing", "commit ");
    const oid = at.made.commit("a: 2", bot);
    at.made.tag("v1.1.0", bot);
    const by = `the key ${fingerprintOf(bot)} of bot@acme.io`;
    expect(conditionsOf(await at.world.resolve()).SourceVerified?.message).toBe(
      `verified tag v1.1.0 with ${by} and commit ${oid} with ${by} (mode TagAndHEAD)`,
    );
  });
});
