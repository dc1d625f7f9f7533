import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { GitRemote } from "#shared/ports.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import {
  canSign,
  type SignedRepository,
  type Signer,
  signedRepository,
  sshSigner,
} from "#test/support/signed-repository.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const hasKeygen = canSign("ssh-keygen");
let root: string;
let server: GitServer;
let world: SourceWorld;
let made: SignedRepository;
let name: string;
let number = 0;
/** The fetches, as `<oid> <paths>`. */
let fetched: string[];
let bot: Signer;
let stranger: Signer;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-verify-"));
  server = await startGitServer({ root });
  if (!hasKeygen) return;
  bot = sshSigner("ed25519");
  stranger = sshSigner("ed25519");
});

afterAll(async () => {
  await server?.stop();
  await rm(root, { recursive: true, force: true });
});

beforeEach(() => {
  number += 1;
  name = `signed-${number}`;
  made = signedRepository(root, name);
  world = new SourceWorld();
  fetched = [];
  const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  const git: GitRemote = {
    listRefs: (repository, prefixes) => remote.listRefs(repository, prefixes),
    fetchTree(repository, commit) {
      fetched.push(`${commit.oid} ${commit.paths}`);
      return remote.fetchTree(repository, commit);
    },
  };
  world.git = git;
});

const specOf = (mode: string, keys: readonly (Signer | string)[], ref: object = { branch: "main" }) => ({
  git: {
    url: server.url(name),
    ref,
    verify: { mode, keys: keys.map((key) => (typeof key === "string" ? key : key.publicKey)) },
  },
});

function conditionsOf({ status }: SourceRow) {
  return Object.fromEntries(
    status.conditions.map(({ type, status: state, reason, message }) => [type, { status: state, reason, message }]),
  );
}

function fingerprintOf({ publicKey }: Signer): string {
  const key = parseSshKey(publicKey);
  if (typeof key === "string") throw new Error(key);
  return key.fingerprint;
}

/** Resolves, and expects a refusal that stores nothing and fetches no files. */
async function expectRefused(reason: string, message: string): Promise<void> {
  const before = [...world.blobs.keys()];
  const files = fetched.filter((each) => !each.endsWith(" ")).length;
  const kept = (await world.resolve()).status.artifact;
  const row = await world.resolve();
  const refused = { status: "False", reason, message: expect.stringContaining(message) };
  expect(conditionsOf(row)).toMatchObject({ Ready: refused, SourceVerified: refused });
  expect(row.status.artifact).toEqual(kept);
  expect([...world.blobs.keys()]).toEqual(before);
  expect(fetched.filter((each) => !each.endsWith(" "))).toHaveLength(files);
}

describe.skipIf(!hasKeygen)("a Source that verifies commits (with ssh-keygen)", () => {
  test.each(["ed25519", "ecdsa", "ecdsa521", "rsa"] as const)(
    "a commit of a trusted %s key is stored",
    async (type) => {
      const signer = sshSigner(type);
      const oid = made.commit("a: 1", signer);
      await world.put(specOf("HEAD", [stranger, signer]));
      const row = await world.resolve();
      expect(conditionsOf(row)).toMatchObject({
        Ready: { status: "True" },
        SourceVerified: {
          status: "True",
          reason: "Succeeded",
          message: `verified commit ${oid} with the key ${fingerprintOf(signer)}`,
        },
      });
      expect((await world.files()).map(({ path }) => path)).toEqual(["a.yaml"]);
      expect(fetched).toEqual([`${oid} `, `${oid} .`]);
      await world.resolve();
      expect(fetched).toHaveLength(2);
    },
  );

  test("a commit without a signature is refused, and the last good one stays", async () => {
    const good = made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    const oid = made.commit("a: 2");
    await expectRefused("SignatureMissing", `commit ${oid} of ${server.url(name)} is not signed`);
    expect((await world.resolve()).status.artifact?.revision).toBe(`main@sha1:${good}`);
    // The refused commit is not fetched again.
    expect(fetched.filter((each) => each.startsWith(oid))).toHaveLength(1);
    made.commit("a: 3", bot);
    expect(conditionsOf(await world.resolve())).toMatchObject({
      Ready: { status: "True" },
      SourceVerified: { status: "True" },
    });
  });

  test("a commit of another key is refused with its fingerprint", async () => {
    made.commit("a: 1", stranger);
    await world.put(specOf("HEAD", [bot]));
    await expectRefused(
      "SignatureKeyUnknown",
      `is signed with the key ${fingerprintOf(stranger)}, which is not trusted`,
    );
  });

  test("a signed commit with one changed byte is refused", async () => {
    made.commit("a: 1", bot);
    made.replace("refs/heads/main", "commit", (commit) => commit.replace("Change a", "Change b"));
    await world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "does not fit its content: it was changed after it was signed");
  });

  test("a signature that was moved to a commit of other files is refused", async () => {
    made.commit("a: 1", bot);
    const signature = /gpgsig (?:.*\n)(?: .*\n)*/.exec(made.git("cat-file", "commit", "HEAD"))?.[0] ?? "";
    made.commit("evil: 1");
    made.replace("refs/heads/main", "commit", (commit) => commit.replace("\n\n", `\n${signature}\n`));
    await world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test("a signature that is damaged is refused", async () => {
    made.commit("a: 1", bot);
    made.replace("refs/heads/main", "commit", (commit) => commit.replace("U1NIU0lH", "U1NIU0lI"));
    await world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureInvalid", "has a signature that is damaged");
  });

  test("during a rotation both keys count, and removing one verifies the present commit again", async () => {
    const old = sshSigner("rsa");
    made.commit("a: 1", old);
    await world.put(specOf("HEAD", [old, bot]));
    const { artifact } = (await world.resolve()).status;
    await world.put(specOf("HEAD", [bot]));
    await expectRefused("SignatureKeyUnknown", `${fingerprintOf(old)}, which is not trusted`);
    expect((await world.resolve()).status.artifact).toEqual(artifact);
    made.commit("a: 2", bot);
    expect(conditionsOf(await world.resolve())).toMatchObject({ SourceVerified: { status: "True" } });
    expect((await world.resolve()).status.artifact?.digest).not.toBe(artifact?.digest);
  });

  test("verification that is switched on later verifies the present commit, and one that is switched off says nothing", async () => {
    made.commit("a: 1");
    const { git } = specOf("HEAD", [bot]);
    const { verify: _verify, ...open } = git;
    await world.put({ git: open });
    expect(Object.keys(conditionsOf(await world.resolve()))).toEqual(["Ready", "ArtifactInStorage"]);
    await world.put({ git });
    await expectRefused("SignatureMissing", "is not signed");
    made.commit("a: 2", bot);
    expect(Object.keys(conditionsOf(await world.resolve()))).toEqual(["Ready", "ArtifactInStorage", "SourceVerified"]);
    await world.put({ git: open });
    expect(Object.keys(conditionsOf(await world.resolve()))).toEqual(["Ready", "ArtifactInStorage"]);
  });

  test("a git server that is away leaves the last word about the signature", async () => {
    made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    world.git = {
      listRefs: () => Promise.reject(new Error("away")),
      fetchTree: () => Promise.reject(new Error("away")),
    };
    expect(conditionsOf(await world.resolve())).toMatchObject({
      Ready: { status: "False" },
      SourceVerified: { status: "True", reason: "Succeeded" },
    });
  });

  test("an artifact that was lost is stored again only after another verification", async () => {
    made.commit("a: 1", bot);
    await world.put(specOf("HEAD", [bot]));
    await world.resolve();
    world.passDays(90);
    await world.resolve();
    const oid = made.git("rev-parse", "HEAD");
    expect((await world.files()).map(({ path }) => path)).toEqual(["a.yaml"]);
    expect(fetched).toEqual([`${oid} `, `${oid} .`, `${oid} `, `${oid} .`]);
  });
});

describe.skipIf(!hasKeygen)("a Source that verifies tags (with ssh-keygen)", () => {
  const version = { semver: ">=1" };

  test("a signed tag of an unsigned commit is stored", async () => {
    const oid = made.commit("a: 1");
    made.tag("v1.0.0", bot);
    await world.put(specOf("Tag", [bot], version));
    const row = await world.resolve();
    expect(row.status.artifact?.revision).toBe(`v1.0.0@sha1:${oid}`);
    expect(conditionsOf(row).SourceVerified).toEqual({
      status: "True",
      reason: "Succeeded",
      message: `verified tag v1.0.0 with the key ${fingerprintOf(bot)}`,
    });
    await world.resolve();
    expect(fetched).toHaveLength(2);
  });

  test("a lightweight tag is refused, until a signed tag takes its place at the same commit", async () => {
    made.commit("a: 1", bot);
    made.tag("v1.0.0", "lightweight");
    await world.put(specOf("Tag", [bot], { tag: "v1.0.0" }));
    await expectRefused("TagNotAnnotated", "tag v1.0.0 of");
    made.tag("v1.0.0", "annotated");
    await expectRefused("SignatureMissing", "is not signed; make it with git tag -s");
    made.tag("v1.0.0", stranger);
    await expectRefused("SignatureKeyUnknown", fingerprintOf(stranger));
    made.tag("v1.0.0", bot);
    expect(conditionsOf(await world.resolve())).toMatchObject({ Ready: { status: "True" } });
    made.tag("v1.0.0", "annotated");
    await expectRefused("SignatureMissing", "is not signed");
  });

  test("a signed tag with one changed byte is refused", async () => {
    made.commit("a: 1");
    made.tag("v1.0.0", bot);
    made.replace("refs/tags/v1.0.0", "tag", (tag) => tag.replace("Ana", "Eve"));
    await world.put(specOf("Tag", [bot], version));
    await expectRefused("SignatureInvalid", "does not fit its content");
  });

  test("a signed tag that is pushed again as a higher version is refused", async () => {
    made.commit("a: 1");
    const old = made.tag("v1.0.0", bot);
    made.commit("a: 2");
    made.git("update-ref", "refs/tags/v1.0.1", old);
    made.tag("v1.0.0", bot);
    made.replace("refs/tags/v1.0.1", "tag", (tag) => tag);
    await world.put(specOf("Tag", [bot], version));
    await expectRefused("SignatureInvalid", "tag v1.0.1 of");
    expect(conditionsOf(await world.resolve()).Ready?.message).toContain("was signed under the name v1.0.0");
  });

  test("a stricter mode verifies the present commit too, and needs both signatures", async () => {
    made.commit("a: 1");
    made.tag("v1.0.0", bot);
    await world.put(specOf("Tag", [bot], version));
    await world.resolve();
    await world.put(specOf("TagAndHEAD", [bot], version));
    await expectRefused("SignatureMissing", "commit ");
    const oid = made.commit("a: 2", bot);
    made.tag("v1.1.0", bot);
    expect(conditionsOf(await world.resolve()).SourceVerified?.message).toBe(
      `verified tag v1.1.0 with the key ${fingerprintOf(bot)} and commit ${oid} with the key ${fingerprintOf(bot)}`,
    );
  });
});
