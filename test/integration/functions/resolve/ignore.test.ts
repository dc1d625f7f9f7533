import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { readLocalArtifact } from "#cli/seeing/local-artifact.ts";
import { runGit } from "#local/git/git-command.ts";
import type { GitServer } from "#local/git/git-server.ts";
import { repositoryFolder } from "#local/git/repository.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const server = forAllTests(startOwnGitServer);
let world: SourceWorld;
let repository: string;
let count = 0;

beforeEach(async () => {
  repository = `app-${count++}`;
  await server.createRepository(repository);
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

type Files = Parameters<GitServer["commitFiles"]>[1];
const commit = (files: Files) => server.commitFiles(repository, files, { message: "Change" });
const put = (spec: object = {}) =>
  world.put({ git: { url: server.url(repository), ref: { branch: "main" } }, ...spec });
const stored = async () => (await world.files()).map(({ path }) => path);

describe("a Source of git that ignores files", () => {
  test("an ignored file is not in the artifact, and a change of ignore alone makes another one of the same revision [source.ignore.again]", async () => {
    await commit({ "deploy/a.yaml": "a: 1", "deploy/a.md": "A", "docs/b.yaml": "b: 1" });
    await put();
    const before = (await world.resolve()).status.artifact;
    world.sender.take();
    await put({ ignore: "*.md\n/docs" });
    const after = (await world.resolve()).status.artifact;
    expect(await stored()).toEqual(["deploy/a.yaml"]);
    expect(after?.revision).toBe(before?.revision);
    expect(after?.digest).not.toBe(before?.digest);
    // A commit that is stored is not used again for other patterns.
    const oid = (before?.revision ?? "").slice(-40);
    const git = { url: server.url(repository), ref: { commit: oid } };
    await world.put({ git, ignore: "*.yaml" });
    await world.resolve();
    expect(await stored()).toEqual(["deploy/a.md"]);
    // The former artifact is used again for its own spec.
    await put();
    expect((await world.resolve()).status.artifact?.digest).toBe(before?.digest);
  });

  test("the files .sourceignore count from the root, also above spec.paths [source.ignore.files]", async () => {
    await commit({
      ".sourceignore": "*.md\n/deploy/old",
      "deploy/.sourceignore": "!keep.md",
      "deploy/a.yaml": "a: 1",
      "deploy/a.md": "A",
      "deploy/keep.md": "K",
      "deploy/old/a.yaml": "a: 0",
    });
    await put({ paths: ["deploy"] });
    await world.resolve();
    expect(await stored()).toEqual(["deploy/.sourceignore", "deploy/a.yaml", "deploy/keep.md"]);
    await put({ paths: ["deploy"], ignore: "keep.md" });
    await world.resolve();
    expect(await stored()).toEqual(["deploy/.sourceignore", "deploy/a.yaml"]);
  });

  test("an ignored file is not fetched, and can neither be too large nor unreadable [source.ignore.unread]", async () => {
    await commit({
      "a.yaml": "a: 1",
      "large.bin": "x".repeat(5000),
      "lfs.yaml": `version https://git-lfs.github.com/spec/v1\noid sha256:${"0".repeat(64)}\nsize 9\n`,
    });
    const folder = repositoryFolder(server.root, repository);
    const blob = (await runGit(["-C", folder, "hash-object", "-w", "--stdin"], "nowhere")).trim();
    const tree = await runGit(["-C", folder, "ls-tree", "main"]);
    const next = await runGit(["-C", folder, "mktree"], `${tree}120000 blob ${blob}\tlink\n`);
    const made = ["-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", next.trim(), "-m", "Link", "-p", "main"];
    await runGit(["-C", folder, "update-ref", "refs/heads/main", (await runGit(["-C", folder, ...made])).trim()]);
    world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1"), limits: { maxContentBytes: 1000 } });
    await put();
    expect(await world.ready()).toMatchObject({ status: "False" });
    await put({ ignore: "*.bin\nlfs.yaml\nlink" });
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(await stored()).toEqual(["a.yaml"]);
  });

  test.each([
    ["spec.ignore", { ignore: "*.bin" }, {}],
    ["a .sourceignore", { paths: ["a.yaml", "data"] }, { ".sourceignore": "*.bin", "data/b.yaml": "b: 1" }],
    ["a .sourceignore of the folder", { paths: ["data", "a.yaml"] }, { "data/.sourceignore": "*.bin" }],
  ])(
    "a file that %s names is not sent by a server that can filter [source.ignore.unread]",
    async (_what, spec, files) => {
      await commit({ "a.yaml": "a: 1", "data/large.bin": randomBytes(100_000).toString("hex"), ...files });
      const limits = { maxPackBytes: 50_000 };
      world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1"), limits });
      await put(spec);
      expect(await world.ready()).toMatchObject({ status: "True" });
      expect(await stored()).not.toContain("data/large.bin");
    },
  );

  test("the place of a link counts, and its target may be ignored [source.ignore.links]", async () => {
    await commit({ "shared/base/a.yaml": "a: 1", "shared/base/a.md": "A", "deploy/b.yaml": "b: 1" });
    const folder = repositoryFolder(server.root, repository);
    const blob = (await runGit(["-C", folder, "hash-object", "-w", "--stdin"], "../shared/base")).trim();
    const deploy = await runGit(["-C", folder, "ls-tree", "main:deploy"]);
    const inner = (await runGit(["-C", folder, "mktree"], `${deploy}120000 blob ${blob}\tbase\n`)).trim();
    const top = (await runGit(["-C", folder, "ls-tree", "main"])).replace(
      /(040000 tree )\w+(\tdeploy)/,
      `$1${inner}$2`,
    );
    const tree = (await runGit(["-C", folder, "mktree"], top)).trim();
    const made = ["-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", tree, "-m", "Link", "-p", "main"];
    await runGit(["-C", folder, "update-ref", "refs/heads/main", (await runGit(["-C", folder, ...made])).trim()]);
    await put({ ignore: "/shared\n/deploy/base/*.md" });
    await world.resolve();
    expect(await stored()).toEqual(["deploy/b.yaml", "deploy/base/a.yaml"].toSorted());
    await put({ ignore: "/shared\nbase/" });
    await world.resolve();
    expect(await stored()).toEqual(["deploy/b.yaml"]);
  });

  test("a folder of this machine gives the same artifact as its commit [source.ignore.local]", async () => {
    const files = {
      ".sourceignore": "*.md\n!docs/keep.md",
      "apps/.sourceignore": "old/",
      "apps/old/a.yaml": "a: 0",
      "apps/a.yaml": "a: 1",
      "docs/a.md": "A",
      "docs/keep.md": "K",
      "logo.png": "P",
    };
    await commit(files);
    const clone = join(server.root, `clone-${repository}`);
    await runGit(["init", "-q", clone]);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(clone, path)), { recursive: true });
      await writeFile(join(clone, path), text);
    }
    for (const ignore of ["/docs\n!*.png", undefined]) {
      await put(ignore === undefined ? {} : { ignore });
      const { artifact } = (await world.resolve()).status;
      const local = await readLocalArtifact({ cwd: server.root }, clone, { paths: ["."], ignore });
      expect(local.artifact.digest).toBe(artifact?.digest);
    }
    expect(await stored()).toEqual([".sourceignore", "apps/.sourceignore", "apps/a.yaml", "docs/keep.md"]);
  });

  test("a file .sourceignore with too much in it refuses the revision, and the artifact stays [source.ignore.hostile]", async () => {
    await commit({ "a.yaml": "a: 1" });
    await put();
    await world.resolve();
    await commit({ "a.yaml": "a: 2", "x/.sourceignore": "a\n".repeat(201) });
    expect(await world.ready()).toMatchObject({
      reason: "GitPathRefused",
      message: expect.stringContaining(
        'the path "x/.sourceignore" of the repository has more than 200 patterns; write fewer and shorter patterns',
      ),
    });
    expect((await world.files()).map(({ content }) => Buffer.from(content).toString())).toEqual(["a: 1"]);
    await commit({ "x/.sourceignore": `#${"a".repeat(70_000)}` });
    expect((await world.ready())?.message).toContain("has more than 64 KiB");
  });
});

test("the files of a pushed archive are ignored by the same rules, and those of version control are taken [source.ignore.kinds]", async () => {
  const file = (path: string, text = "") => ({ path, executable: false, content: Buffer.from(text) });
  await world.put({
    external: { principals: ["arn:aws:iam::111122223333:role/ci"] },
    paths: ["deploy"],
    ignore: "*.txt",
  });
  const packed = await packArtifact([
    file(".sourceignore", "*.md"),
    ...["deploy/a.yaml", "deploy/a.md", "deploy/a.txt", "deploy/a.png", "other/a.yaml"].map((path) => file(path)),
  ]);
  await world.push("1.0.0", packed);
  await world.resolve();
  expect(await stored()).toEqual(["deploy/a.png", "deploy/a.yaml"]);
});
