/** Revisions at which templates stay, found by the real function in repositories of a real server. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import { everyRow } from "#test/support/every-row.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { findRevision, nameRevision, pollRevision, textsOfRevision } from "#test/support/named-revisions.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { canSign, type Signer, sshSigner } from "#test/support/signed-repository.ts";
import { signedSources } from "#test/support/signed-sources.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const source = { namespace: "shop", name: "app" };
const server = forAllTests(startOwnGitServer);
let world: SourceWorld;
let repository: string;
let number = 0;
let first: string;

beforeEach(async () => {
  number += 1;
  repository = `app-${number}`;
  first = (await server.createRepository(repository, { "a.yaml": "first", "b/b.yaml": "b" })) ?? "";
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

const specOf = (more: object = {}) => ({ git: { url: server.url(repository), ref: { branch: "main" } }, ...more });
const push = (text: string) => server.commitFiles(repository, { "a.yaml": text }, { message: text });
const tag = (name: string, commit: string) =>
  execFileSync("git", ["-C", repositoryFolder(server.root, repository), "tag", "--force", name, commit]);

const writeSync = (at: SourceWorld, revision: string | undefined) => nameRevision(at, revision);
const find = (revision: string, at = world) => findRevision(at, revision);
const pollPin = (revision: string, at = world) => pollRevision(at, revision);
const contentOf = async (row: PinRow | undefined) => (await textsOfRevision(world, row))["a.yaml"];

const noGit = () => {
  world.git = {
    listRefs: () => Promise.reject(new Error("nothing is listed")),
    fetchTree: () => Promise.reject(new Error("nothing is fetched")),
  };
};

describe("a revision that a Sync names", () => {
  test("a commit that the Source never had is fetched, and its Sync is informed [source.pin.fetched]", async () => {
    await push("second");
    await world.put(specOf());
    await world.resolve();
    expect(await writeSync(world, first)).toEqual([
      { to: "resolve", source, pin: first },
      { to: "rollout", owner: { namespace: "shop", kind: "Sync", name: "web" }, clusters: [] },
    ]);
    world.sender.take();
    const row = await pollPin(first);
    expect(row).toMatchObject({ artifact: { revision: `sha1:${first}` }, announced: expect.stringContaining(first) });
    expect(await contentOf(row)).toBe("first");
    expect(world.sender.take()).toEqual([
      { to: "rollout", owner: { namespace: "shop", kind: "Sync", name: "web" }, clusters: [] },
    ]);
    // The Source goes on, and nobody is informed of the revision once more.
    const { status } = await world.resolve();
    expect(status.artifact?.revision).toContain("main@sha1:");
    await pollPin(first);
    expect(world.sender.take()).toEqual([]);
  });

  test("a revision that the Source had is found without its upstream, by each of its forms [source.pin.stored]", async () => {
    await world.put(specOf());
    await world.resolve();
    const second = await push("second");
    await world.resolve();
    noGit();
    for (const form of [first, `sha1:${first}`, `main@sha1:${first}`])
      expect(await contentOf(await find(form))).toBe("first");
    expect(await contentOf(await find(second))).toBe("second");
  });

  test("a tag stays at the commit that it had when it was found [source.pin.tag]", async () => {
    await world.put(specOf());
    tag("v1", first);
    expect((await find("v1"))?.artifact?.revision).toBe(`v1@sha1:${first}`);
    tag("v1", await push("second"));
    expect(await contentOf(await pollPin("v1"))).toBe("first");
    // Other paths make another artifact of the same commit.
    await world.put(specOf({ paths: ["a.yaml"] }));
    const row = await pollPin("v1");
    expect(row?.artifact).toMatchObject({ revision: expect.stringContaining(first), files: 1 });
    expect(await contentOf(row)).toBe("first");
  });

  test("a tag that has moved is refused by a Source whose tags are immutable [source.pin.tag]", async () => {
    tag("v1.0.0", first);
    await world.put({ git: { url: server.url(repository), ref: { semver: "^1" } }, immutableTags: true });
    await world.resolve();
    tag("v1.1.0", await push("second"));
    await world.resolve();
    tag("v1.0.0", await push("third"));
    // Its rows are older than revisions are kept.
    for (const { pk, sk } of await everyRow(world.table, ranges.revisions(source)))
      await world.table.write([{ delete: { pk, sk } }]);
    expect((await find("v1.0.0"))?.failure).toMatchObject({
      code: "TagMoved",
      message: expect.stringContaining(`the tag v1.0.0 of ${server.url(repository)} was at sha1:${first}`),
    });
  });

  test.each([
    [
      "a commit that is cut off",
      "3f1c0c3",
      "the repository has no refs/tags/3f1c0c3; push it, or correct revision: a commit has 40 digits; stored",
    ],
    [
      "a digest, which git has not",
      `sha256:${"a".repeat(64)}`,
      "it is a digest, and the Source follows git; write a commit with all of its 40 digits, or a tag; stored",
    ],
    ["a tag that does not exist", "v9", "the repository has no refs/tags/v9; push it, or correct revision; stored"],
    ["the branch that the Source follows", "main", "it is the branch that the Source follows; leave revision out"],
    ["a commit that does not exist", "a".repeat(40), "a".repeat(40)],
  ])("%s is not found: the message names what is stored [source.pin.missing]", async (_, revision, cause) => {
    await world.put(specOf());
    await world.resolve();
    const row = await find(revision);
    expect(row?.artifact).toBeUndefined();
    expect(row?.failure?.message).toContain(cause);
    expect(row?.failure?.message).toContain(`; stored are main@sha1:${first}`);
  });

  test("a tag that is pushed later is looked for when the Source moves", async () => {
    await world.put(specOf());
    await world.resolve();
    const row = await find("v1");
    const dueAt = (one: PinRow | undefined) => one?.dueKey?.slice(0, 24);
    expect(dueAt(row)).toBe("2026-03-01T10:05:00.000Z");
    tag("v1", await push("second"));
    await world.resolve();
    expect(dueAt(await world.table.get(keys.pin(source, "v1")))).toBe(world.now.toISOString());
    expect(await contentOf(await pollPin("v1"))).toBe("second");
  });

  test("a suspended Source is asked for nothing", async () => {
    await world.put(specOf());
    await world.resolve();
    await push("second");
    const row = await world.table.get(keys.object("shop", "Source", "app"));
    if (row === undefined) throw new Error("the Source is gone");
    const suspended = { by: "ana", at: world.now.toISOString(), number: 1 };
    const next: SourceRow = { ...row, version: row.version + 1, operations: { suspended } };
    await world.table.write([{ put: next }]);
    noGit();
    expect(await contentOf(await find(first))).toBe("first");
    expect((await find("v1"))?.failure?.message).toContain("the Source is suspended; resume it");
  });
});

describe("the artifact of a revision", () => {
  /** Longer than a blob lives that nobody stores again, with pushes, and with the polls and checks that the rows ask for. */
  async function halfYear(): Promise<void> {
    for (let month = 0; month < 9; month += 1) {
      await push(`push ${month}`);
      world.passDays(20);
      await world.resolve();
      await pollPin(first);
    }
  }

  test("it stays stored for as long as a Sync names it, whatever the Source retains [source.artifact.named]", async () => {
    await world.put(specOf({ retain: 1 }));
    await world.resolve();
    const digest = (await find(first))?.artifact?.digest ?? "";
    await halfYear();
    expect(world.blobs.keys()).toContain(blobKeys.artifact(digest));
    expect(await contentOf(await world.table.get(keys.pin(source, first)))).toBe("first");
    // Nobody names it any more: the row goes at once, and the artifact with its age.
    await writeSync(world, undefined);
    expect(await pollPin(first)).toBeUndefined();
    await halfYear();
    expect(world.blobs.keys()).not.toContain(blobKeys.artifact(digest));
  });

  test("a lost one is fetched again", async () => {
    await world.put(specOf());
    await push("second");
    const digest = (await find(first))?.artifact?.digest ?? "";
    world.passDays(70);
    expect(world.blobs.keys()).not.toContain(blobKeys.artifact(digest));
    expect(await contentOf(await pollPin(first))).toBe("first");
  });

  test("a Sync that is named anew while the row is forgotten keeps it", async () => {
    await world.put(specOf());
    await find(first);
    await writeSync(world, undefined);
    const key = keys.pin(source, first);
    world.watch = (table) => ({
      ...table,
      get: (...args) => table.get(...args),
      getMany: (...args) => table.getMany(...args),
      query: (...args) => table.query(...args),
      async write(writes) {
        world.watch = (same) => same;
        if (writes.some((write) => "delete" in write)) await writeSync(world, first);
        return table.write(writes);
      },
    });
    await world.resolve({ pin: first });
    expect(await world.table.get(key)).toMatchObject({ artifact: { revision: `sha1:${first}` } });
  });
});

describe.skipIf(!canSign("ssh-keygen"))("a Source that verifies (with ssh-keygen)", () => {
  const at = signedSources();
  let bot: Signer;
  let other: Signer;
  beforeAll(() => {
    bot = sshSigner("ed25519");
    other = sshSigner("ed25519");
  });
  const verified = (mode: string, ...keysOf: readonly Signer[]) =>
    at.specOf(
      mode,
      keysOf.map(({ publicKey }) => publicKey),
    );

  test("a revision is verified, and one whose key is removed is refused until it is trusted again [source.pin.verified]", async () => {
    const signed = at.made.commit("a: 1", bot);
    const unsigned = at.made.commit("a: 2");
    at.made.commit("a: 3", other);
    await at.world.put(verified("HEAD", bot, other));
    await at.world.resolve();
    expect((await find(signed, at.world))?.artifact).toMatchObject({ verified: { mode: "HEAD" } });
    expect((await find(unsigned, at.world))?.failure?.code).toBe("SignatureMissing");
    await writeSync(at.world, signed);
    await at.world.put(verified("HEAD", other));
    await at.world.resolve();
    const refused = await pollPin(signed, at.world);
    expect(refused?.failure?.code).toBe("SignatureKeyUnknown");
    // The row remembers the artifact, and no plan uses it.
    expect(refused?.artifact?.revision).toContain(signed);
    await at.world.put(verified("HEAD", bot, other));
    const again = await pollPin(signed, at.world);
    expect(again?.failure).toBeUndefined();
    expect(again?.artifact?.revision).toContain(signed);
  });
});

describe("a chart", () => {
  let files: FileServer;
  const versions = ["1.0.0", "2.0.0"];
  const answers: Record<string, string | Buffer> = {};

  beforeAll(async () => {
    for (const version of versions)
      answers[`/web-${version}.tgz`] = await tarGz([
        { name: "web/Chart.yaml", body: `apiVersion: v2\nname: web\nversion: ${version}\n` },
        { name: "web/templates/a.yaml", body: `a: ${version}\n` },
      ]);
    const entries = versions.flatMap((version) => [`  - version: ${version}`, `    urls: [web-${version}.tgz]`]);
    answers["/index.yaml"] = ["apiVersion: v1", "entries:", "  web:", ...entries, ""].join("\n");
    files = await startFileServer(({ url }) => {
      const body = answers[url];
      return body === undefined ? { status: 404 } : { body };
    });
  });
  afterAll(() => files.stop());

  test("a version that the range of the Source does not allow is found, and a part of one is not [source.pin.fetched]", async () => {
    await world.put({ helm: { url: files.url, chart: "web", ref: { semver: "^1" } } });
    expect((await world.resolve()).status.artifact?.revision).toContain("1.0.0");
    expect((await find("2.0.0"))?.artifact?.revision).toContain("2.0.0");
    expect((await find("v1.0.0"))?.artifact?.revision).toContain("1.0.0");
    expect((await find("2"))?.failure?.message).toContain("a chart is found by its whole version, such as 4.11.3");
    expect((await find("3.0.0"))?.failure?.message).toContain("no version matches =3.0.0");
  });
});
