/** Pinned revisions while other writers, dead fetches, other places and names with an aim are in the way. */
import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect, test } from "vitest";
import { repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { desiredPlan } from "#shared/fleet/rollout/desired-plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { sourcesAmong } from "#shared/fleet/sources/sources-among.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { findRevision, nameRevision, pollRevision, textsOfRevision } from "#test/support/named-revisions.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const source = { namespace: "shop", name: "app" };
const server = forAllTests(startOwnGitServer);
let world: SourceWorld;
let number = 0;
let repository: string;

beforeEach(() => {
  number += 1;
  repository = `app-${number}`;
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

const gitAt = (name: string, more: object = {}) => ({
  git: { url: server.url(name), ref: { branch: "main" }, ...more },
});
const inFolder = (name: string, ...line: readonly string[]) =>
  execFileSync("git", ["-C", repositoryFolder(server.root, name), ...line]);
const create = async (name: string, text: string) => (await server.createRepository(name, { "a.yaml": text })) ?? "";

/** The planner makes this of the rows as they are. */
async function planned({ table }: SourceWorld) {
  const rows = await table.getMany([
    keys.object("shop", "Source", "app"),
    keys.object("shop", "Sync", "web"),
    keys.pin(source, "v1"),
  ]);
  const owner = rows.find((row) => row.type === "Sync");
  if (owner === undefined) throw new Error("the Sync is gone");
  return desiredPlan(owner, sourcesAmong(rows));
}

describe("a tag that was found at another place", () => {
  test("it makes no plan before it is looked for at the new one [source.pin.former-place]", async () => {
    const old = await create(repository, "old");
    inFolder(repository, "tag", "v1", old);
    await world.put(gitAt(repository));
    expect((await findRevision(world, "v1"))?.artifact?.revision).toBe(`v1@sha1:${old}`);
    expect(await planned(world)).toMatchObject({ ok: true, plan: { templates: [{ revision: `v1@sha1:${old}` }] } });
    // The Sync leaves, the Source moves, and the Sync returns: its row is from before.
    await nameRevision(world, undefined);
    const other = await create(`${repository}-b`, "new");
    inFolder(`${repository}-b`, "tag", "v1", other);
    await world.put(gitAt(`${repository}-b`));
    await nameRevision(world, "v1");
    expect(await planned(world)).toMatchObject({ ok: false, reason: "RevisionNotStored" });
    await pollRevision(world, "v1");
    expect(await planned(world)).toMatchObject({ ok: true, plan: { templates: [{ revision: `v1@sha1:${other}` }] } });
  });
});

test("a commit of a branch whose name has an @ is found again when the Source has other paths", async () => {
  const first = await create(repository, "first");
  inFolder(repository, "branch", "web@2", first);
  const following = { git: { url: server.url(repository), ref: { branch: "web@2" } } };
  await world.put(following);
  await world.resolve();
  expect((await findRevision(world, first))?.artifact?.revision).toBe(`web@2@sha1:${first}`);
  await world.put({ ...following, paths: ["a.yaml"] });
  const row = await pollRevision(world, first);
  expect(row?.failure).toBeUndefined();
  expect(await textsOfRevision(world, row)).toEqual({ "a.yaml": "first" });
});

test("the name of a revision asks a registry for nothing but a tag of the Source's own repository [source.pin.own-repository]", async () => {
  const registry = await startFileServer(() => ({ status: 404 }));
  try {
    await world.put({ oci: { url: `${registry.url.replace("http:", "oci:")}/acme/shop`, ref: { tag: "v1" } } });
    const row = await findRevision(world, "x/../../../victim/secrets/manifests/v1");
    expect(registry.asked.map(({ url }) => url).filter((url) => !url.startsWith("/v2/acme/shop/"))).toEqual([]);
    expect(row?.failure?.code).toBe("RevisionNotStored");
  } finally {
    await registry.stop();
  }
});

test("a Source that has another spec after a fetch died has its revisions looked for", async () => {
  const first = await create(repository, "first");
  await world.put(gitAt(repository));
  await world.resolve();
  await findRevision(world, first);
  // An invocation begins to fetch the next commit, and dies.
  await server.commitFiles(repository, { "a.yaml": "second" }, { message: "second" });
  const { git } = world;
  world.git = {
    listRefs: (...args) => git.listRefs(...args),
    fetchTree: () => new Promise(() => {}),
  };
  void world.resolve();
  await expect.poll(async () => (await world.row()).status.fetch?.id).toBeDefined();
  world.git = git;
  await world.put({ ...gitAt(repository), paths: ["a.yaml"] });
  world.now = new Date(world.now.getTime() + 400_000);
  await world.resolve();
  const row = await world.table.get(keys.pin(source, first));
  expect(row?.dueKey?.slice(0, 24)).toBe(world.now.toISOString());
});

test("a revision that is named anew is not forgotten by a late check of its former row", async () => {
  const first = await create(repository, "first");
  await world.put(gitAt(repository));
  await nameRevision(world, first);
  await nameRevision(world, undefined);
  const key = keys.pin(source, first);
  // The late check has read the row; meanwhile another one forgets it, and somebody names the revision again.
  world.watch = (table) => ({
    ...table,
    get: (...args) => table.get(...args),
    getMany: (...args) => table.getMany(...args),
    query: (...args) => table.query(...args),
    async write(writes) {
      world.watch = (same) => same;
      world.now = new Date(world.now.getTime() + 1000);
      await table.write([{ delete: key }]);
      await nameRevision(world, first);
      return table.write(writes);
    },
  });
  await world.resolve({ pin: first });
  expect(await world.table.get(key)).toBeDefined();
});

test("a revision that takes long to fetch is kept although others name it meanwhile, and all of them are informed", async () => {
  const first = await create(repository, "first");
  await world.put(gitAt(repository));
  const { git } = world;
  let names = 0;
  let fetches = 0;
  world.git = {
    listRefs: (...args) => git.listRefs(...args),
    async fetchTree(...args) {
      fetches += 1;
      const tree = await git.fetchTree(...args);
      names += 1;
      await nameRevision(world, first, { sync: `late-${names}` });
      return tree;
    },
  };
  const row = await findRevision(world, first);
  expect(row?.artifact?.revision).toBe(`sha1:${first}`);
  expect(fetches).toBe(1);
  const informed = world.sender.take().flatMap((message) => (message.to === "rollout" ? [message.owner.name] : []));
  expect(new Set(informed)).toEqual(new Set(["web", "late-1"]));
});

test("an artifact that was fetched for the former spec of the Source is not kept", async () => {
  const first = await create(repository, "first");
  await world.put(gitAt(repository));
  await nameRevision(world, first);
  const { git } = world;
  world.git = {
    listRefs: (...args) => git.listRefs(...args),
    async fetchTree(...args) {
      const tree = await git.fetchTree(...args);
      world.git = git;
      await world.put({ ...gitAt(repository), paths: ["a.yaml"], interval: "1h" });
      await world.resolve();
      return tree;
    },
  };
  await expect(world.resolve({ pin: first })).rejects.toThrow();
  const row = await pollRevision(world, first);
  expect(row?.artifact?.madeFrom).toBe((await world.row()).status.artifact?.madeFrom);
});

test("a tag that moves between two checks at one time stays where the first one to write found it", async () => {
  const first = await create(repository, "first");
  inFolder(repository, "tag", "v1", first);
  await world.put(gitAt(repository));
  await nameRevision(world, "v1");
  const { git } = world;
  world.git = {
    listRefs: (...args) => git.listRefs(...args),
    async fetchTree(...args) {
      const tree = await git.fetchTree(...args);
      world.git = git;
      const second = await server.commitFiles(repository, { "a.yaml": "second" }, { message: "second" });
      inFolder(repository, "tag", "--force", "v1", second);
      await world.resolve({ pin: "v1" });
      return tree;
    },
  };
  await expect(world.resolve({ pin: "v1" })).rejects.toThrow("row changed");
  const row = await pollRevision(world, "v1");
  expect(await textsOfRevision(world, row)).toEqual({ "a.yaml": "second" });
});
