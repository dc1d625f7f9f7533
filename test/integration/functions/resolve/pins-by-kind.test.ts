/** Revisions at which Syncs stay, of each kind of upstream but git and charts, and of a Source that includes another. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { startBucketServer } from "#test/support/bucket-server.ts";
import { everyRow } from "#test/support/every-row.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { findRevision, nameRevision, pollRevision, textsOfRevision } from "#test/support/named-revisions.ts";
import { type Feed, feedKinds } from "#test/support/source-feeds.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

/** The Source's history is older than revisions are kept. */
async function forgetHistory({ table }: SourceWorld): Promise<void> {
  for (const { pk, sk } of await everyRow(table, ranges.revisions({ namespace: "shop", name: "app" })))
    await table.write([{ delete: { pk, sk } }]);
}

describe.each(feedKinds.filter(({ name }) => /^(?:artifacts in a registry|a bucket|pushed)/.test(name)))(
  "a revision of $name",
  ({ start }) => {
    let world: SourceWorld;
    let feed: Feed;
    let first: string;

    beforeEach(async () => {
      world = new SourceWorld();
      feed = await start({ credentials: "none", verification: "none", world });
      await world.put({ [feed.kind]: feed.upstream });
      first = await follow("1.0.0", "first");
    });
    afterEach(() => feed.stop());

    async function follow(version: string, text: string): Promise<string> {
      await feed.publish(version, text);
      return (await world.resolve()).status.artifact?.revision ?? "none";
    }

    test("one that the Source had stays while the Source goes on, and its upstream is not asked", async () => {
      expect(await follow("1.1.0", "second")).not.toBe(first);
      const asked = feed.contentRequests();
      const row = await findRevision(world, first);
      expect(feed.contentRequests()).toBe(asked);
      expect(await textsOfRevision(world, row)).toMatchObject({ "a.yaml": "first" });
      await follow("1.2.0", "third");
      expect(await pollRevision(world, first)).toMatchObject({ artifact: { digest: row?.artifact?.digest } });
      expect(await feed.stored()).toBe("third");
    });

    test("one that is in no history is found where the upstream has it, and refused with what is stored", async () => {
      const second = await follow("1.1.0", "second");
      await forgetHistory(world);
      const row = await findRevision(world, first);
      if (feed.kind === "s3") {
        expect(row?.artifact).toBeUndefined();
        expect(row?.failure).toMatchObject({
          code: "RevisionNotStored",
          message: expect.stringContaining("it is not stored, and its upstream has only what it has now"),
        });
        expect(await findRevision(world, second)).toMatchObject({ artifact: { revision: second } });
      } else {
        expect(await textsOfRevision(world, row)).toEqual({ "a.yaml": "first" });
      }
    });
  },
);

test("a version of pushes that nobody pushed is refused", async () => {
  const world = new SourceWorld();
  await world.put({ external: { principals: ["arn:aws:iam::111122223333:role/ci"] } });
  await world.push("1.0.0", await tarGz([{ name: "a.yaml", body: "first" }]));
  await world.resolve();
  const row = await findRevision(world, "2.0.0");
  expect(row?.artifact).toBeUndefined();
  expect(row?.failure?.message).toContain("; stored are 1.0.0@sha256:");
});

test("a tag of a registry stays at its digest when it moves", async () => {
  const world = new SourceWorld();
  const oci = feedKinds.find(({ name }) => name === "artifacts in a registry");
  const feed = await oci?.start({ credentials: "none", verification: "none", world });
  try {
    await feed?.publish("1.0.0", "first");
    await world.put({ oci: { ...feed?.upstream, ref: { semver: "^9" } } });
    const row = await findRevision(world, "stable");
    expect(await textsOfRevision(world, row)).toEqual({ "a.yaml": "first" });
    await feed?.publish("1.1.0", "second");
    expect(await textsOfRevision(world, await pollRevision(world, "stable"))).toEqual({ "a.yaml": "first" });
  } finally {
    await feed?.stop();
  }
});

test.each([
  ["another folder", "releases/1.0"],
  ["another folder, with a slash at the end", "releases/1.0/"],
  ["the whole bucket", undefined],
])(
  "a revision of a bucket stays when the Source goes on from %s to a new one, and not in another bucket",
  async (_, prefix) => {
    const world = new SourceWorld();
    const server = await startBucketServer();
    try {
      world.buckets = new S3BucketReader((region) => server.s3In(region));
      world.bucketRules = { allowed: parseAllowedBuckets("acme-feed,acme-other"), own: "starling-blobs" };
      await server.put("acme-feed", { "releases/1.0/a.yaml": "first" });
      await world.put({ s3: { bucket: "acme-feed", prefix } });
      const first = (await world.resolve()).status.artifact;
      const revision = first?.revision ?? "none";
      await server.put("acme-feed", { "releases/1.1/a.yaml": "second" });
      await world.put({ s3: { bucket: "acme-feed", prefix: "releases/1.1" } });
      expect((await world.resolve()).status.artifact?.revision).not.toBe(revision);
      const asked = server.requests.length;
      expect(await findRevision(world, revision)).toMatchObject({ artifact: { digest: first?.digest } });
      await world.put({ s3: { bucket: "acme-feed", prefix: "releases/1.2" } });
      await world.resolve({ pin: revision });
      const kept = await pollRevision(world, revision);
      expect(kept).toMatchObject({ artifact: { digest: first?.digest } });
      expect(kept?.failure).toBeUndefined();
      expect(server.requests.length).toBe(asked);
      await world.put({ s3: { bucket: "acme-other" } });
      expect((await pollRevision(world, revision))?.failure).toMatchObject({
        code: "RevisionNotStored",
        message:
          "it is not stored, and its upstream has only what it has now; name a stored revision, or leave revision out; no other revision is stored",
      });
    } finally {
      await server.stop();
    }
  },
);

test("an archive that a Source had before stays, although the spec of the Source names another one", async () => {
  const world = new SourceWorld();
  const packed = await Promise.all(["first", "second"].map((body) => tarGz([{ name: "a.yaml", body }])));
  const server = await startFileServer(({ url }) => {
    const body = packed[Number(url.slice(1))];
    return body === undefined ? { status: 404 } : { body };
  });
  try {
    const follow = async (number: number, more: object = {}) => {
      const digest = hexOf(sha256(packed[number] ?? new Uint8Array()));
      await world.put({ archive: { url: `${server.url}/${number}`, sha256: digest }, ...more });
      return (await world.resolve()).status.artifact?.revision ?? "none";
    };
    const first = await follow(0);
    const early = await findRevision(world, first);
    await follow(1);
    expect(await textsOfRevision(world, early)).toEqual({ "a.yaml": "first" });
    expect(await pollRevision(world, first)).toMatchObject({ artifact: { digest: early?.artifact?.digest } });
    expect((await pollRevision(world, first))?.failure).toBeUndefined();
    // Another Sync names it only now.
    await nameRevision(world, undefined);
    await pollRevision(world, first);
    expect(await textsOfRevision(world, await findRevision(world, first))).toEqual({ "a.yaml": "first" });
    // Other paths make another artifact, and the first archive is not asked for again.
    await follow(1, { paths: ["a.yaml"] });
    expect((await pollRevision(world, first))?.failure?.code).toBe("RevisionNotStored");
    expect(server.asked.length).toBe(3);
  } finally {
    await server.stop();
  }
});

describe("a revision of a Source that includes another", () => {
  let root: string;
  let server: GitServer;
  let number = 0;
  let app: SourceWorld;
  let base: SourceWorld;
  let first: string;

  const repositoryOf = (name: string) => `${name}-${number}`;
  const push = (name: string, text: string) =>
    server.commitFiles(repositoryOf(name), { [`${name}.yaml`]: text }, { message: text });
  const gitOf = (name: string) => ({ git: { url: server.url(repositoryOf(name)), ref: { branch: "main" } } });

  async function worldOf(name: string, like?: SourceWorld): Promise<SourceWorld> {
    const world = new SourceWorld(like?.table, {
      source: { namespace: "shop", name },
      uid: name,
      ...(like && { blobs: like.blobs }),
    });
    world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    await server.createRepository(repositoryOf(name), { [`${name}.yaml`]: "1" });
    return world;
  }

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "starling-pins-"));
    server = await startGitServer({ root });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(root, { recursive: true, force: true });
  });
  beforeEach(async () => {
    number += 1;
    base = await worldOf("base");
    app = await worldOf("app", base);
    await base.put(gitOf("base"));
    await base.resolve();
    await app.put({ ...gitOf("app"), include: [{ source: "base" }] });
    first = (await app.resolve()).status.artifact?.revision ?? "none";
  });

  /** Both Sources have moved. */
  async function moveBoth(): Promise<void> {
    await push("base", "2");
    await base.resolve();
    await push("app", "2");
    await app.resolve();
  }

  test("it keeps what was included when the Source had it, and a change of that informs nobody [source.pin.included]", async () => {
    await moveBoth();
    const row = await findRevision(app, first);
    expect(await textsOfRevision(app, row)).toEqual({ "app.yaml": "1", "base/base.yaml": "1" });
    app.sender.take();
    await push("base", "3");
    await base.resolve();
    await app.resolve();
    expect((await pollRevision(app, first))?.artifact).toEqual(row?.artifact);
    const informed = app.sender.take().filter(({ to }) => to === "rollout");
    // The Sync is informed of the Source's own artifact only.
    expect(informed).toHaveLength(1);
  });

  test("one that the Source never had gets what is included when it is found, and keeps it", async () => {
    const never = await push("app", "never followed");
    await moveBoth();
    const row = await findRevision(app, never);
    expect(await textsOfRevision(app, row)).toEqual({ "app.yaml": "never followed", "base/base.yaml": "2" });
    await push("base", "3");
    await base.resolve();
    await app.resolve();
    expect((await pollRevision(app, never))?.artifact).toEqual(row?.artifact);
  });

  test.each(["the Source had", "the Source never had"])(
    "one that %s is made again of the same files",
    async (which) => {
      const revision = which === "the Source had" ? first : await push("app", "never followed");
      await moveBoth();
      const row = await findRevision(app, revision);
      const { digest = "", revision: exact = "" } = row?.artifact ?? {};
      const before = await textsOfRevision(app, row);
      await push("base", "3");
      await base.resolve();
      await app.resolve();
      app.blobs.lose(blobKeys.artifact(digest));
      // As a renderer that misses it asks.
      await app.resolve({ lost: digest, revision: exact });
      expect(app.errors).toEqual([]);
      expect(await textsOfRevision(app, row)).toEqual(before);
    },
  );
});
