import { beforeEach, describe, expect, test } from "vitest";
import { runGit } from "#local/git/git-command.ts";
import { repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const server = forAllTests(startOwnGitServer);
let world: SourceWorld;
let repository: string;
let first: string;
let count = 0;

beforeEach(async () => {
  repository = `app-${count++}`;
  await server.createRepository(repository);
  first = await server.commitFiles(repository, { "a.yaml": "a: 1\n" }, { message: "One" });
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

/** Moves a reference that no branch and no tag is, as a forge does for a merge request. */
const move = (ref: string, commit: string) =>
  runGit(["-C", repositoryFolder(server.root, repository), "update-ref", ref, commit]);

const follow = (name: string, more: object = {}) =>
  world.put({ git: { url: server.url(repository), ref: { name } }, ...more });

describe("a Source that follows a reference by its full name", () => {
  test("it follows the reference of a pull request, also when it moves [source.reference.full]", async () => {
    await move("refs/pull/420/head", first);
    await follow("refs/pull/420/head");
    expect((await world.resolve()).status.artifact?.revision).toBe(`refs/pull/420/head@sha1:${first}`);
    const second = await server.commitFiles(repository, { "a.yaml": "a: 2\n" }, { message: "Two", branch: "topic" });
    expect((await world.resolve()).status.artifact?.revision).toBe(`refs/pull/420/head@sha1:${first}`);
    await move("refs/pull/420/head", second);
    expect((await world.resolve()).status.artifact?.revision).toBe(`refs/pull/420/head@sha1:${second}`);
    expect((await world.files()).map(({ content }) => Buffer.from(content).toString())).toEqual(["a: 2\n"]);
  });

  test("a branch and a tag of one name are told apart [source.reference.full]", async () => {
    await move("refs/tags/main", first);
    const second = await server.commitFiles(repository, { "a.yaml": "a: 2\n" }, { message: "Two" });
    await follow("refs/heads/main");
    expect((await world.resolve()).status.artifact?.revision).toBe(`refs/heads/main@sha1:${second}`);
    await follow("refs/tags/main");
    expect((await world.resolve()).status.artifact?.revision).toBe(`refs/tags/main@sha1:${first}`);
  });

  test("a longer reference is another one, and a missing one is named [source.reference.full]", async () => {
    await move("refs/pull/420/head", first);
    await follow("refs/pull/42");
    const { conditions, artifact } = (await world.resolve()).status;
    expect(artifact).toBeUndefined();
    expect(conditions.find(({ type }) => type === "Ready")).toMatchObject({
      reason: "GitRefNotFound",
      message: `${server.url(repository)}: the repository has no refs/pull/42; push it, or correct spec.git.ref`,
    });
  });

  test("a tag by its full name that moves is refused with immutableTags [source.reference.full]", async () => {
    await move("refs/tags/v1.0.0", first);
    await follow("refs/tags/v1.0.0", { immutableTags: true });
    await world.resolve();
    const second = await server.commitFiles(repository, { "a.yaml": "a: 2\n" }, { message: "Two" });
    await move("refs/tags/v1.0.0", second);
    const { conditions, artifact } = (await world.resolve()).status;
    expect(conditions.find(({ type }) => type === "Ready")).toMatchObject({ reason: "TagMoved" });
    expect(artifact?.revision).toBe(`refs/tags/v1.0.0@sha1:${first}`);
  });
});
