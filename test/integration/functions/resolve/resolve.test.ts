import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ResolvePorts, resolveSource } from "#functions/resolve/resolve.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import type { FileChanges } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { ConflictError, StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { ResolveMessage } from "#shared/messages.ts";
import type { GitRemote, Log, SecretReader, Write } from "#shared/ports.ts";
import { everyRow } from "#test/support/every-row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noBuckets } from "#test/support/no-buckets.ts";
import { noHttp } from "#test/support/no-http.ts";
import { noRole } from "#test/support/no-role.ts";

const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };
const source = { namespace: "shop", name: "fleet" };
const key = keys.object("shop", "Source", "fleet");
const message = { to: "resolve", source } as const;
const context = { getRemainingTimeInMillis: () => 180_000 };

let root: string;
let server: GitServer;
let closed: GitServer;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-resolve-"));
  server = await startGitServer({ root: join(root, "open") });
  closed = await startGitServer({ root: join(root, "closed"), credentials: { username: "u", password: "s3cret" } });
  await closed.createRepository("fleet", { "a.yaml": "a: 1" });
});

afterAll(async () => {
  await server?.stop();
  await closed?.stop();
  await rm(root, { recursive: true, force: true });
});

/** Counts what is asked of git, and lets a test act before the table is written. */
class World {
  readonly table = new MemoryTable();
  readonly blobs = new MemoryBlobStore(() => this.now);
  readonly sender = new MemorySender();
  readonly asked: string[] = [];
  readonly errors: string[] = [];
  now = new Date("2026-03-01T10:00:00.000Z");
  secret = "";
  beforeWrite: (() => Promise<void>) | undefined;

  ports(): ResolvePorts {
    const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
    const git: GitRemote = {
      listRefs: (repository, prefixes) => {
        this.asked.push(`list ${prefixes}`);
        return remote.listRefs(repository, prefixes);
      },
      fetchTree: (repository, commit) => {
        this.asked.push(`fetch ${commit.paths}`);
        return remote.fetchTree(repository, commit);
      },
    };
    const world = this;
    const table = Object.assign(Object.create(this.table) as MemoryTable, {
      get: (desired: typeof key) => this.table.get(desired),
      query: (query: Parameters<MemoryTable["query"]>[0]) => this.table.query(query),
      async write(writes: readonly Write[]) {
        const act = world.beforeWrite;
        world.beforeWrite = undefined;
        await act?.();
        await world.table.write(writes);
      },
    });
    return {
      table,
      blobs: this.blobs,
      sender: this.sender,
      git,
      http: noHttp,
      ...noBuckets,
      secrets: { read: async () => this.secret },
      role: noRole,
      events: undefined,
      clock: { now: () => this.now },
      ids: randomIds,
      log: { ...silent, error: (text, fields) => this.errors.push(`${text}: ${JSON.stringify(fields)}`) },
    };
  }

  async row(): Promise<SourceRow> {
    const row = await this.table.get(key);
    if (row === undefined) throw new Error("the Source is gone");
    return row;
  }

  async change(change: (row: SourceRow) => Partial<SourceRow>): Promise<void> {
    const row = await this.row();
    await this.table.write([{ put: { ...row, ...change(row), version: row.version + 1 } }]);
  }

  async resolve(more: Partial<ResolveMessage> = {}): Promise<readonly string[]> {
    this.asked.length = 0;
    await resolveSource({ ...message, ...more }, this.ports(), context);
    return this.asked;
  }

  pass(days: number): void {
    this.now = new Date(this.now.getTime() + days * 86_400_000);
    this.blobs.expire(60);
  }

  ready() {
    return this.row().then((row) => row.status.conditions.find((condition) => condition.type === "Ready"));
  }
}

async function worldWith(spec: unknown): Promise<World> {
  const world = new World();
  const row: SourceRow = {
    ...key,
    ...source,
    type: "Source",
    schema: rowSchema,
    version: 1,
    uid: "u1",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: world.now.toISOString(),
    spec: sourceSpec.parse(spec),
    operations: {},
    status: { conditions: [] },
  };
  await world.table.write([
    { put: row },
    {
      put: {
        ...keys.uses(source, { namespace: "shop", kind: "SyncGroup", name: "web" }),
        type: "Directory",
        schema: 1,
        version: 1,
      },
    },
    {
      put: {
        ...keys.uses(source, { namespace: "shop", kind: "Sync", name: "one" }),
        type: "Directory",
        schema: 1,
        version: 1,
      },
    },
  ]);
  return world;
}

const ownerMessages = [
  { to: "rollout", owner: { namespace: "shop", kind: "Sync", name: "one" }, clusters: [] },
  { to: "rollout", owner: { namespace: "shop", kind: "SyncGroup", name: "web" }, clusters: [] },
];

let count = 0;
let repository: string;
let first: string;

beforeEach(async () => {
  repository = `fleet-${count++}`;
  await server.createRepository(repository);
  first = await server.commitFiles(
    repository,
    { "deploy/app.yaml": "a: 1\n", "docs/a.md": "x" },
    { message: "First\n\nbody", at: new Date("2026-02-01T00:00:00Z"), tag: "v1.0.0" },
  );
});

describe("a Source that follows a branch", () => {
  let world: World;
  beforeEach(async () => {
    world = await worldWith({ git: { url: server.url(repository), ref: { branch: "main" } }, paths: ["deploy"] });
  });

  test("a Source has its artifact as long as it is polled, and nothing is fetched for that", async () => {
    await world.resolve();
    const before = (await world.row()).status.artifact;
    const stored = world.blobs.keys();
    expect(stored).toHaveLength(1);
    for (let polls = 0; polls < 20; polls++) {
      world.pass(10);
      expect(await world.resolve()).toEqual(["list refs/heads/main"]);
    }
    expect(world.blobs.keys()).toEqual(stored);
    const { artifact } = (await world.row()).status;
    expect(artifact).toEqual({ ...before, storedAt: artifact?.storedAt });
    // The time is written every twenty days, and no more often.
    expect(artifact?.storedAt).toBe(world.now.toISOString());
    const { version } = await world.row();
    world.pass(10);
    await world.resolve();
    expect((await world.row()).status.artifact?.storedAt).toBe(artifact?.storedAt);
    expect((await world.row()).version).toBe(version + 1);
  });

  test("a Source that was not polled for months fetches a lost artifact again [source.artifact.lost]", async () => {
    await world.resolve();
    const stored = world.blobs.keys();
    world.pass(90);
    expect(world.blobs.keys()).toEqual([]);
    expect(await world.resolve()).toEqual(["list refs/heads/main", "fetch deploy"]);
    expect(world.blobs.keys()).toEqual(stored);
    expect((await world.row()).status).toMatchObject({ artifact: { storedAt: world.now.toISOString() } });
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  describe("a suspended Source that follows a branch", () => {
    const suspended = () => ({ suspended: { by: "ana", at: world.now.toISOString(), number: 1 } });
    beforeEach(async () => {
      await world.resolve();
      await world.change(() => ({ operations: suspended() }));
      world.sender.take();
    });

    test("a suspended Source keeps its artifact, asks git nothing and sends no message [source.poll.suspended]", async () => {
      const stored = world.blobs.keys();
      const before = await world.row();
      for (let polls = 0; polls < 10; polls++) {
        world.pass(20);
        expect(await world.resolve()).toEqual([]);
        expect(await world.resolve()).toEqual([]);
      }
      expect(world.blobs.keys()).toEqual(stored);
      const { artifact, ...status } = (await world.row()).status;
      expect({ ...status, artifact: { ...artifact, storedAt: before.status.artifact?.storedAt } }).toEqual(
        before.status,
      );
      expect((await world.row()).version).toBe(before.version + 10);
      expect(dueAtOf((await world.row()).dueKey ?? "#")).toBe(later(world.now.toISOString(), 20 * 86_400));
      expect(world.sender.take()).toEqual([]);
    });

    test("a Source that is suspended for some time is polled at the end, and not before [source.poll.suspended]", async () => {
      const until = later(world.now.toISOString(), 2 * 86_400);
      await world.change(() => ({ operations: { suspended: { ...suspended().suspended, until } } }));
      world.pass(1);
      expect(await world.resolve()).toEqual([]);
      expect((await world.row()).operations.suspended?.until).toBe(until);
      world.pass(1);
      expect(await world.resolve()).toEqual(["list refs/heads/main"]);
      expect((await world.row()).operations).toEqual({
        resumed: { by: "ana", at: until, number: 2, stood: 2 * 86_400 },
      });
    });

    test("a suspended Source reports a lost artifact, and fetches it when it is resumed [source.artifact.lost-while-suspended]", async () => {
      const { digest = "" } = (await world.row()).status.artifact ?? {};
      world.blobs.lose(blobKeys.artifact(digest));
      expect(await world.resolve({ lost: digest, revision: `main@sha1:${first}` })).toEqual([]);
      expect(await world.ready()).toMatchObject({
        status: "False",
        reason: "ArtifactLost",
        message: `the artifact ${digest} is gone; it is fetched again when the Source is resumed`,
      });
      expect((await world.row()).dueKey).toBeUndefined();
      await world.change(() => ({ operations: {} }));
      expect(await world.resolve()).toEqual(["list refs/heads/main", "fetch deploy"]);
      expect(await world.ready()).toMatchObject({ status: "True" });
      expect(world.blobs.keys()).toEqual([blobKeys.artifact(digest)]);
    });
  });

  test("an artifact that is fetched again is stored over the remains of the old one", async () => {
    await world.resolve();
    const stored = world.blobs.keys();
    const at = new Date("2026-02-02T00:00:00Z");
    await server.commitFiles(repository, { "deploy/app.yaml": "a: 2\n" }, { message: "Second", at });
    await world.resolve();
    world.pass(59);
    await server.commitFiles(repository, { "deploy/app.yaml": "a: 1\n" }, { message: "Third", at });
    await world.resolve();
    world.pass(59);
    expect(world.blobs.keys()).toEqual(expect.arrayContaining([...stored]));
  });

  describe("a Source that is asked for an artifact that it had before", () => {
    let lost: string;
    beforeEach(async () => {
      await world.resolve();
      lost = (await world.row()).status.artifact?.digest ?? "";
      const at = new Date("2026-02-02T00:00:00Z");
      await server.commitFiles(repository, { "deploy/app.yaml": "a: 2\n" }, { message: "Second", at });
      await world.resolve();
      world.sender.take();
    });
    const had = () => ({ lost, revision: `main@sha1:${first}` });

    test("a Source fetches a past artifact at its revision, and keeps its current one [source.artifact.lost]", async () => {
      const before = await world.row();
      const bytes = await world.blobs.get(blobKeys.artifact(lost));
      world.blobs.lose(blobKeys.artifact(lost));
      expect(await world.resolve(had())).toEqual(["fetch deploy"]);
      expect(await world.blobs.get(blobKeys.artifact(lost))).toEqual(bytes);
      expect(await world.row()).toEqual(before);
      expect(world.sender.take()).toEqual([]);
      // The artifact exists, so nothing is fetched.
      expect(await world.resolve(had())).toEqual([]);
    });

    test.each([
      ["is not in git", async () => ({ lost, revision: `main@sha1:${"0".repeat(40)}` }), "push a commit"],
      [
        "has another artifact by now, because spec.paths changed",
        async () => {
          await world.change(({ spec }) => ({ spec: { ...spec, paths: ["docs"] } }));
          return had();
        },
        "ArtifactGone",
      ],
    ])("a Source reports what is lost, and what to do, if the revision %s", async (_what, asked, expected) => {
      world.blobs.lose(blobKeys.artifact(lost));
      const message = await asked();
      await world.resolve(message);
      expect(world.blobs.keys()).toHaveLength(1);
      expect(world.errors).toEqual([expect.stringContaining(expected)]);
      for (const named of [lost, message.revision, "fleet", "takes the place"])
        expect(world.errors[0]).toContain(named);
      expect(await world.ready()).toMatchObject({ status: "True" });
    });

    test("a suspended Source asks git for no past artifact", async () => {
      world.blobs.lose(blobKeys.artifact(lost));
      await world.change(() => ({ operations: { suspended: { by: "ana", at: world.now.toISOString(), number: 1 } } }));
      expect(await world.resolve(had())).toEqual([]);
    });
  });

  test("a revision is pinned, stored and announced", async () => {
    expect(await world.resolve()).toEqual(["list refs/heads/main", "fetch deploy"]);
    const { status } = await world.row();
    expect(status.artifact).toMatchObject({
      revision: `main@sha1:${first}`,
      files: 1,
      subject: "First",
      author: "Starling Local <local@starling.invalid>",
      storedAt: "2026-03-01T10:00:00.000Z",
    });
    expect(status.conditions).toEqual([
      {
        type: "Ready",
        status: "True",
        reason: "Succeeded",
        message: `stored artifact for revision main@sha1:${first}`,
        since: "2026-03-01T10:00:00.000Z",
      },
      {
        type: "ArtifactInStorage",
        status: "True",
        reason: "Succeeded",
        message: `stored artifact for revision main@sha1:${first}`,
        since: "2026-03-01T10:00:00.000Z",
      },
    ]);
    const digest = status.artifact?.digest ?? "";
    const files = await unpackArtifact(await world.blobs.get(blobKeys.artifact(digest)), digest);
    expect(files.map((file) => [file.path, Buffer.from(file.content).toString()])).toEqual([
      ["deploy/app.yaml", "a: 1\n"],
    ]);
    expect(world.sender.take()).toEqual(ownerMessages);
    expect(await everyRow(world.table, { pk: "REV#shop#fleet" })).toMatchObject([
      { type: "Revision", artifact: { revision: `main@sha1:${first}` } },
    ]);
  });

  test("a poll costs one listing when nothing changed, and sends no message [source.poll.unchanged]", async () => {
    await world.resolve();
    world.sender.take();
    const before = await world.row();
    world.now = new Date("2026-03-01T10:05:00.000Z");
    expect(await world.resolve()).toEqual(["list refs/heads/main"]);
    const after = await world.row();
    expect(world.sender.take()).toEqual([]);
    expect(after.status.artifact).toEqual(before.status.artifact);
    expect(after.status.conditions).toEqual(before.status.conditions);
    expect(after.status.attemptedAt).toBe("2026-03-01T10:05:00.000Z");
    // The next turn is an interval of five minutes later at most, and not at once.
    const next = dueAtOf(after.dueKey ?? "");
    expect(next >= "2026-03-01T10:05:30" && next <= "2026-03-01T10:10:30.000Z", next).toBe(true);
  });

  test("a Source moves with the branch [source.poll.new-commit]", async () => {
    await world.resolve();
    world.sender.take();
    const second = await server.commitFiles(repository, { "deploy/app.yaml": "a: 2\n" }, { message: "Second" });
    world.now = new Date("2026-03-01T10:05:00.000Z");
    await world.resolve();
    expect((await world.row()).status.artifact?.revision).toBe(`main@sha1:${second}`);
    expect(world.sender.take()).toEqual(ownerMessages);
    expect(await everyRow(world.table, { pk: "REV#shop#fleet" })).toHaveLength(2);
  });

  test("an artifact that could not be stored is named nowhere, and the last good one stays until the next poll [source.artifact.complete]", async () => {
    await world.resolve();
    const before = (await world.row()).status.artifact;
    world.sender.take();
    const second = await server.commitFiles(repository, { "deploy/app.yaml": "a: 2\n" }, { message: "Second" });
    const { overwrite } = world.blobs;
    world.blobs.overwrite = () => Promise.reject(new Error("the storage does not answer"));
    await world.resolve();
    world.blobs.overwrite = overwrite;
    expect(await world.ready()).toMatchObject({ status: "False" });
    expect((await world.row()).status.artifact).toEqual(before);
    expect(world.sender.take()).toEqual([]);
    expect(await everyRow(world.table, { pk: "REV#shop#fleet" })).toHaveLength(1);
    await world.resolve();
    const { digest = "", revision } = (await world.row()).status.artifact ?? {};
    expect(revision).toBe(`main@sha1:${second}`);
    await unpackArtifact(await world.blobs.get(blobKeys.artifact(digest)), digest);
    expect(world.sender.take()).toEqual(ownerMessages);
  });

  test("a revision that was refused is not fetched again before a reconcile, another spec or another commit [source.poll.refused]", async () => {
    const listed = ["list refs/heads/main"];
    const fetched = [...listed, "fetch deploy"];
    await world.resolve();
    const { artifact } = (await world.row()).status;
    const push = (files: FileChanges) => server.commitFiles(repository, files, { message: "Change" });
    await push({ "deploy/link.yaml": { symlink: "../../outside" } });
    expect(await world.resolve()).toEqual(fetched);
    for (let poll = 0; poll < 3; poll++) {
      world.now = new Date(world.now.getTime() + 600_000);
      expect(await world.resolve()).toEqual(listed);
      expect(await world.ready()).toMatchObject({ status: "False", reason: "GitPathRefused" });
      expect((await world.row()).status.artifact).toEqual(artifact);
    }
    await world.change(() => ({ operations: { reconcile: { by: "me", at: world.now.toISOString(), number: 7 } } }));
    expect(await world.resolve()).toEqual(fetched);
    expect(await world.resolve()).toEqual(listed);
    await world.change(({ spec, generation }) => ({ generation: generation + 1, spec: { ...spec, interval: "1h" } }));
    expect(await world.resolve()).toEqual(fetched);
    await push({ "deploy/link.yaml": "a: 1\n" });
    expect(await world.resolve()).toEqual(fetched);
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a branch that is pushed by force is followed to a commit without a common history, and back [source.reference.forced]", async () => {
    const at = new Date("2026-02-01T00:00:00Z");
    const original = { "deploy/app.yaml": "a: 1\n", "docs/a.md": "x" };
    const force = async (files: Readonly<Record<string, string>>, message: string): Promise<string> => {
      await server.deleteRef(repository, "refs/heads/main");
      return server.commitFiles(repository, files, { message, at });
    };
    await world.resolve();
    const { artifact } = (await world.row()).status;
    const other = await force({ "deploy/other.yaml": "b: 1\n" }, "Another history");
    await world.resolve();
    expect((await world.row()).status.artifact).toMatchObject({
      revision: `main@sha1:${other}`,
      subject: "Another history",
    });
    expect(await force(original, "First\n\nbody")).toBe(first);
    await world.resolve();
    expect((await world.row()).status.artifact).toMatchObject({
      revision: `main@sha1:${first}`,
      digest: artifact?.digest,
    });
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a Source keeps its artifact for a commit outside of its paths, and takes the new revision [source.files.beside]", async () => {
    await world.resolve();
    const before = (await world.row()).status.artifact;
    const committedAt = "2026-02-02T00:00:00.000Z";
    const second = await server.commitFiles(
      repository,
      { "docs/a.md": "y" },
      { message: "Docs", at: new Date(committedAt) },
    );
    world.now = new Date("2026-03-01T10:05:00.000Z");
    await world.resolve();
    const after = (await world.row()).status.artifact;
    expect(after?.madeFrom).not.toBe(before?.madeFrom);
    const { madeFrom } = after ?? {};
    expect(after).toEqual({ ...before, madeFrom, revision: `main@sha1:${second}`, subject: "Docs", committedAt });
  });

  test("a Source keeps its artifact while the branch is gone, backs off, and recovers [source.reference.gone]", async () => {
    await world.resolve();
    const { artifact } = (await world.row()).status;
    await server.commitFiles(repository, { x: "y" }, { message: "Other", branch: "other" });
    await server.deleteRef(repository, "refs/heads/main");
    world.now = new Date("2026-03-01T10:05:00.000Z");
    world.sender.take();
    await world.resolve();
    const { status, dueKey } = await world.row();
    expect(status.artifact).toEqual(artifact);
    expect(status.failures).toBe(1);
    expect(status.conditions).toMatchObject([
      {
        type: "Ready",
        status: "False",
        reason: "GitRefNotFound",
        message: expect.stringContaining("has no refs/heads/main; push it"),
        since: "2026-03-01T10:05:00.000Z",
      },
      { type: "FetchFailed", status: "True", reason: "GitRefNotFound" },
      { type: "ArtifactInStorage", status: "True", since: "2026-03-01T10:00:00.000Z" },
    ]);
    expect(dueAtOf(dueKey ?? "")).toBe("2026-03-01T10:05:05.000Z");
    expect(world.sender.take()).toEqual([]);
    await server.commitFiles(repository, {}, { message: "Back", onto: first });
    await world.resolve();
    expect((await world.row()).status).not.toHaveProperty("failures");
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a Source fetches again when its paths changed [source.files.other-paths]", async () => {
    await world.resolve();
    await world.change((row) => ({ spec: { ...row.spec, paths: ["docs"] }, generation: 2 }));
    expect(await world.resolve()).toEqual(["list refs/heads/main", "fetch docs"]);
    expect((await world.row()).status.artifact?.files).toBe(1);
  });

  test("a Source fetches again after its paths were missing, although the reference has not changed", async () => {
    await world.resolve();
    await world.change((row) => ({ spec: { ...row.spec, paths: ["deploy", "nope"] }, generation: 2 }));
    await world.resolve();
    expect(await world.ready()).toMatchObject({
      reason: "PathNotFound",
      message: expect.stringContaining('has no files in "nope"; correct spec.paths'),
    });
    expect(await world.resolve()).toEqual(["list refs/heads/main", "fetch deploy,nope"]);
    await world.change((row) => ({ spec: { ...row.spec, paths: ["."] }, generation: 3 }));
    await world.resolve();
    expect((await world.row()).status.artifact?.files).toBe(2);
  });

  test("a Source polls again when its spec changed during the poll [source.poll.newest]", async () => {
    world.beforeWrite = () => world.change((row) => ({ spec: { ...row.spec, paths: ["docs"] }, generation: 2 }));
    await world.resolve();
    const { status } = await world.row();
    expect(status.observedGeneration).toBe(2);
    const digest = status.artifact?.digest ?? "";
    const files = await unpackArtifact(await world.blobs.get(blobKeys.artifact(digest)), digest);
    expect(files.map((file) => file.path)).toEqual(["docs/a.md"]);
  });

  test("a Source notifies its owners after a crash between the write and the messages [source.poll.crash]", async () => {
    const ports = world.ports();
    const dying = { ...ports, sender: { send: async () => Promise.reject(new Error("killed")) } };
    await expect(resolveSource(message, dying, context)).rejects.toThrow("killed");
    const row = await world.row();
    expect(row.status.artifact?.revision).toBe(`main@sha1:${first}`);
    expect(dueAtOf(row.dueKey ?? "")).toBe("2026-03-01T10:00:30.000Z");
    await world.resolve();
    expect(world.sender.take()).toEqual(ownerMessages);
    await world.resolve();
    expect(world.sender.take()).toEqual([]);
    expect(await everyRow(world.table, { pk: "REV#shop#fleet" })).toHaveLength(1);
  });

  test("a Source gives up for now when its row changes at every write", async () => {
    const ports = world.ports();
    const table = Object.assign(Object.create(ports.table) as typeof ports.table, {
      get: (desired: typeof key) => world.table.get(desired),
      write: async () => Promise.reject(new ConflictError("somebody wrote it")),
    });
    await expect(resolveSource(message, { ...ports, table }, context)).rejects.toBeInstanceOf(ConflictError);
  });

  test("a Source that is suspended or deleted is not polled", async () => {
    await world.change(() => ({ operations: { suspended: { by: "me", at: "2026-03-01T00:00:00.000Z", number: 1 } } }));
    expect(await world.resolve()).toEqual([]);
    await world.table.write([{ delete: key }]);
    expect(await world.resolve()).toEqual([]);
  });

  test("a Source records which reconcile it handled", async () => {
    await world.change(() => ({ operations: { reconcile: { by: "me", at: "2026-03-01T09:59:00.000Z", number: 7 } } }));
    await world.resolve();
    expect((await world.row()).status.handledReconcile).toBe(7);
  });
});

describe("the reference of a Source", () => {
  test("the reference is the branch that HEAD stands for if the Source names none [source.reference.head]", async () => {
    const world = await worldWith({ git: { url: server.url(repository) } });
    expect(await world.resolve()).toEqual(["list HEAD", "fetch ."]);
    expect((await world.row()).status.artifact?.revision).toBe(`main@sha1:${first}`);
  });

  test("the reference may be a tag", async () => {
    const world = await worldWith({ git: { url: server.url(repository), ref: { tag: "v1.0.0" } } });
    await world.resolve();
    expect((await world.row()).status.artifact?.revision).toBe(`v1.0.0@sha1:${first}`);
  });

  test("the reference may be a version range, in which the latest commit decides between equal versions [source.version.equal]", async () => {
    const world = await worldWith({ git: { url: server.url(repository), ref: { semver: "1.x" } } });
    await world.resolve();
    expect((await world.row()).status.artifact?.revision).toBe(`v1.0.0@sha1:${first}`);
    const later = await server.commitFiles(
      repository,
      { "deploy/app.yaml": "a: 3\n" },
      { message: "Again", at: new Date("2026-02-03T00:00:00Z"), tag: { name: "v1.0.0+b2", message: "x" } },
    );
    await server.commitFiles(
      repository,
      { "deploy/app.yaml": "a: 4\n" },
      { message: "Between", at: new Date("2026-02-02T00:00:00Z"), tag: "v1.0.0+b3" },
    );
    await world.resolve();
    expect((await world.row()).status.artifact?.revision).toBe(`v1.0.0+b2@sha1:${later}`);
  });

  test("a filter leaves only some tags for the range, and a tag outside of it is not followed [source.version.filter]", async () => {
    const ref = { semver: ">=1.0.0-0", tagFilter: "-rc\\.\\d+$" };
    const world = await worldWith({ git: { url: server.url(repository), ref } });
    await world.resolve();
    const reason = "no tag matches >=1.0.0-0 because tagFilter -rc\\.\\d+$ matches none of";
    const { status } = await world.row();
    expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
      reason: "GitRefNotFound",
      message: expect.stringContaining(reason),
    });
    const candidate = await server.commitFiles(
      repository,
      { "deploy/app.yaml": "a: 5\n" },
      { message: "Candidate", tag: "v2.0.0-rc.1" },
    );
    await server.commitFiles(repository, { "deploy/app.yaml": "a: 6\n" }, { message: "Release", tag: "v2.0.0" });
    await world.resolve();
    expect((await world.row()).status.artifact?.revision).toBe(`v2.0.0-rc.1@sha1:${candidate}`);
  });

  test("a reference to a commit needs no listing, and asks git nothing once the commit is stored [source.reference.commit]", async () => {
    await server.commitFiles(repository, { "deploy/app.yaml": "a: 2\n" }, { message: "Second" });
    const world = await worldWith({ git: { url: server.url(repository), ref: { commit: first } } });
    expect(await world.resolve()).toEqual(["fetch ."]);
    expect((await world.row()).status.artifact?.revision).toBe(`sha1:${first}`);
    expect(await world.resolve()).toEqual([]);
  });
});

describe("a Source that cannot be read", () => {
  const rows: readonly (readonly [legend: string, spec: () => unknown, reason: string])[] = [
    ["names a repository that does not exist", () => ({ git: { url: server.url("missing") } }), "GitNotFound"],
    [
      "has no tag in its range",
      () => ({ git: { url: server.url(repository), ref: { semver: ">=9" } } }),
      "GitRefNotFound",
    ],
    [
      "has a path that does not exist",
      () => ({ git: { url: server.url(repository) }, paths: ["nope"] }),
      "PathNotFound",
    ],
    [
      "names a repository that needs credentials",
      () => ({ git: { url: closed.url("fleet") } }),
      "GitAuthenticationFailed",
    ],
    ["has an address that is not allowed", () => ({ git: { url: "https://169.254.169.254/x" } }), "AddressRefused"],
    ["has an address at which nothing answers", () => ({ git: { url: "http://127.0.0.1:1/x" } }), "GitOperationFailed"],
  ];
  test.each(rows)(
    "a Source that %s is not ready, has no artifact and sends no message",
    async (_legend, spec, reason) => {
      const world = await worldWith(spec());
      await world.resolve();
      expect(await world.ready()).toMatchObject({ status: "False", reason });
      const { status } = await world.row();
      expect(status).not.toHaveProperty("artifact");
      expect(world.sender.take()).toEqual([]);
    },
  );

  test("a Source of an empty repository is reported [source.reference.empty]", async () => {
    await server.createRepository(`${repository}-empty`);
    const world = await worldWith({ git: { url: server.url(`${repository}-empty`) } });
    await world.resolve();
    expect(await world.ready()).toMatchObject({ reason: "EmptyGitRepository" });
  });

  const secrets: readonly (readonly [kind: "basic" | "bearer", value: object | string, reason: string])[] = [
    ["basic", { username: "u", password: "s3cret" }, "Succeeded"],
    ["basic", { username: "u", password: "wr0ng" }, "GitAuthenticationFailed"],
    ["basic", { username: "u" }, "InvalidCredentials"],
    ["basic", "s3cret", "SecretUnbound"],
    ["basic", { host: undefined, username: "u", password: "s3cret" }, "SecretUnbound"],
    ["basic", { host: "github.com", username: "u", password: "s3cret" }, "SecretMismatch"],
    ["basic", { namespaces: ["blog"], username: "u", password: "s3cret" }, "SecretMismatch"],
    ["bearer", { token: "s3cret two" }, "InvalidCredentials"],
    ["bearer", "s3cret", "SecretUnbound"],
    ["bearer", { token: "s3cret" }, "GitAuthenticationFailed"],
  ];
  test.each(secrets)(
    "%s credentials %j are reported as %s, and not shown [source.credentials.hidden]",
    async (kind, value, reason) => {
      const url = closed.url("fleet");
      const world = await worldWith({ git: { url, credentials: { secret: "x", kind } } });
      world.secret = typeof value === "string" ? value : JSON.stringify({ host: new URL(url).host, ...value });
      await world.resolve();
      expect(await world.ready()).toMatchObject({ reason });
      expect(JSON.stringify(await world.row())).not.toMatch(/s3cret|wr0ng/);
    },
  );

  test.each([
    ["is renewed is read anew", "s3cret", "Succeeded", 2],
    ["is wrong is tried only once", "wr0ng", "GitAuthenticationFailed", 1],
  ])("a secret that %s when its kept value is refused", async (_what, password, reason, listings) => {
    const url = closed.url("fleet");
    const world = await worldWith({ git: { url, credentials: { secret: "x", kind: "basic" } } });
    const textOf = (now: string) => JSON.stringify({ host: new URL(url).host, username: "u", password: now });
    const reads: boolean[] = [];
    const read: SecretReader["read"] = async (_name, { fresh = false } = {}) => {
      reads.push(fresh);
      return textOf(fresh ? password : "wr0ng");
    };
    await resolveSource(message, { ...world.ports(), secrets: { read } }, context);
    expect(await world.ready()).toMatchObject({ reason });
    expect(reads).toEqual([false, true]);
    expect(world.asked.filter((asked) => asked.startsWith("list"))).toHaveLength(listings);
  });

  test.each<[string, (closed: URL, evil: string) => string]>([
    ["directly", (_closed, evil) => `http://${evil}/fleet`],
    ["behind a user's name that some parsers take for the host", ({ host }, evil) => `http://${host}\\@${evil}/fleet`],
  ])(
    "a host that the URL names %s gets no credentials of another host [source.credentials.host]",
    async (_what, urlFor) => {
      const heard: IncomingHttpHeaders[] = [];
      const evil = createServer(({ headers }, response) => {
        heard.push(headers);
        response.writeHead(404).end();
      }).listen(0, "127.0.0.1");
      await once(evil, "listening");
      try {
        const { port } = evil.address() as AddressInfo;
        const url = urlFor(new URL(closed.url("fleet")), `127.0.0.1:${port}`);
        const world = await worldWith({ git: { url, credentials: { secret: "x", kind: "basic" } } });
        world.secret = JSON.stringify({ host: new URL(closed.url("fleet")).host, username: "u", password: "s3cret" });
        await world.resolve();
        expect(await world.ready()).toMatchObject({ status: "False" });
        expect(heard).toEqual([]);
      } finally {
        evil.close();
      }
    },
  );

  test("a Source whose secret does not exist is reported", async () => {
    const world = await worldWith({ git: { url: closed.url("fleet"), credentials: { secret: "x", kind: "basic" } } });
    const ports = world.ports();
    const read = async () => Promise.reject(new StarlingError("no x", { code: "SecretNotFound", retry: "transient" }));
    await resolveSource(message, { ...ports, secrets: { read } }, context);
    expect(await world.ready()).toMatchObject({ reason: "SecretNotFound" });
  });
});
