/** Only the files of `spec.paths` are fetched of a large repository where the server can leave out the rest. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileChanges } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type RawRepository, rawRepository } from "#test/support/raw-repository.ts";

let server: OwnGitServer;
let repository: RawRepository;
let posts: number;

beforeEach(async () => {
  posts = 0;
  server = await startOwnGitServer({
    disturb({ method }) {
      if (method === "POST") posts += 1;
      return undefined;
    },
  });
  repository = rawRepository(server.root, "fleet");
});
afterEach(async () => {
  await server.stop();
});

async function commit(files: FileChanges): Promise<string> {
  const oid = await server.createRepository("fleet", files);
  await repository.git("config", "uploadpack.allowFilter", "true");
  return oid ?? "";
}

async function fetched(oid: string, ...paths: readonly string[]): Promise<Record<string, string>> {
  const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  const { files } = await remote.fetchTree({ url: server.url("fleet") }, { oid, paths });
  return Object.fromEntries(files.map(({ path, content }) => [path, Buffer.from(content).toString()]));
}

const files = { "deploy/a.yaml": "a: 1\n", "deploy/b/c.yaml": "c: 1\n", "other/x.yaml": "x: 1\n", "y.yaml": "y: 1\n" };

test("files outside of the paths are not fetched [source.files.part]", async () => {
  const oid = await commit(files);
  const blob = (await repository.git("rev-parse", `${oid}:other/x.yaml`)).trim();
  // The server cannot send the whole commit any more.
  await rm(join(repository.folder, "objects", blob.slice(0, 2), blob.slice(2)));
  expect(await fetched(oid, "deploy")).toEqual({ "deploy/a.yaml": "a: 1\n", "deploy/b/c.yaml": "c: 1\n" });
  await expect(fetched(oid, "other")).rejects.toMatchObject({ code: expect.stringMatching(/^Git/) });
});

test("a file, a folder and an annotated tag are read in the same way with and without filters", async () => {
  const oid = await commit(files);
  await repository.git("-c", "user.name=A", "-c", "user.email=a@example.com", "tag", "-a", "-m", "x", "v1", oid);
  const tag = (await repository.git("rev-parse", "refs/tags/v1")).trim();
  const expected = { "deploy/b/c.yaml": "c: 1\n", "y.yaml": "y: 1\n" };
  expect(await fetched(tag, "deploy/b", "y.yaml")).toEqual(expected);
  expect(posts).toBe(2);
  await repository.git("config", "uploadpack.allowFilter", "false");
  expect(await fetched(tag, "deploy/b", "y.yaml")).toEqual(expected);
  expect(posts).toBe(3);
});

test("paths without a file need no second request", async () => {
  expect(await fetched(await commit(files), "nothing")).toEqual({});
  expect(posts).toBe(1);
});

describe("links", () => {
  /** `l0` is a link to `l1`, and so on, and the last to a folder outside of the paths. */
  const chain = (length: number): FileChanges =>
    Object.fromEntries(
      Array.from({ length }, (_, index) => [
        `deploy/l${index}`,
        { symlink: index === length - 1 ? "../base/web" : `../on-the-way/l${index + 1}` },
      ]).flatMap(([path, link]) => [
        [path, link],
        [String(path).replace("deploy", "on-the-way"), link],
      ]),
    );

  test.each([1, 2, 8])("a chain of %i links leads to files outside of the paths", async (length) => {
    const oid = await commit({ ...chain(length), "base/web/a.yaml": "a: 1\n", "other/x.yaml": "x: 1\n" });
    const paths = length === 1 ? ["deploy"] : ["deploy/l0"];
    expect(await fetched(oid, ...paths)).toEqual({ "deploy/l0/a.yaml": "a: 1\n" });
  });

  test("many links in a folder are fetched together", async () => {
    const links = Array.from({ length: 50 }, (_, index) => [`deploy/l${index}`, { symlink: "../base/a.yaml" }]);
    const oid = await commit({ ...Object.fromEntries(links), "base/a.yaml": "a: 1\n" });
    expect(Object.keys(await fetched(oid, "deploy"))).toHaveLength(50);
    // The trees, the links, which are one object, and what they lead to.
    expect(posts).toBe(3);
  });

  test("a link on the way to a path is followed", async () => {
    const oid = await commit({ live: { symlink: "base/web" }, "base/web/a.yaml": "a: 1\n", "x.yaml": "x: 1\n" });
    expect(await fetched(oid, "live/a.yaml")).toEqual({ "live/a.yaml": "a: 1\n" });
  });

  test.each([
    ["leads out of the repository", "../../etc/passwd"],
    ["is not in the repository", "../base/nothing"],
    ["is part of a cycle of links", "l0"],
  ])("a link that %s is refused", async (problem, symlink) => {
    const oid = await commit({ "deploy/l0": { symlink }, "deploy/z.yaml": "z: 1\n", "base/a.yaml": "a: 1\n" });
    await expect(fetched(oid, "deploy")).rejects.toMatchObject({
      code: "GitPathRefused",
      message: expect.stringContaining(problem),
    });
  });
});

test("a submodule in the paths is refused, and one beside them does no harm", async () => {
  const blob = await (async () => {
    await commit(files);
    return repository.blob("a: 1\n");
  })();
  const folder = await repository.tree([
    { mode: "100644", name: "a.yaml", oid: blob },
    { mode: "160000", name: "sub", oid: "1".repeat(40) },
  ]);
  const oid = await repository.commit(
    await repository.tree([
      { mode: "40000", name: "bad", oid: folder },
      { mode: "40000", name: "good", oid: await repository.tree([{ mode: "100644", name: "a.yaml", oid: blob }]) },
    ]),
  );
  expect(await fetched(oid, "good")).toEqual({ "good/a.yaml": "a: 1\n" });
  await expect(fetched(oid, "bad")).rejects.toMatchObject({ code: "GitPathRefused" });
});
