import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readLocalArtifact } from "#cli/seeing/local-artifact.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

type Content = string | { readonly symlink: string };
type Contents = Readonly<Record<string, Content>>;

const root = mkdtempSync(join(tmpdir(), "starling-links-"));
const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
let server: GitServer;
let count = 0;

beforeAll(async () => {
  server = await startGitServer({ root: join(root, "served") });
});

afterAll(async () => {
  await server?.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The same files, read from a commit of a git server and from local folders. */
const ways: readonly (readonly [
  way: string,
  filesOf: (contents: Contents, paths: readonly string[]) => Promise<Files>,
])[] = [
  ["in a commit", filesOfCommit],
  ["in a working folder", (contents, paths) => filesOfFolder(contents, paths, "with git")],
  ["in a folder without git", (contents, paths) => filesOfFolder(contents, paths, "without git")],
];
type Files = readonly { readonly path: string; readonly executable: boolean; readonly content: Uint8Array }[];

async function filesOfCommit(contents: Contents, paths: readonly string[]): Promise<Files> {
  const name = `links-${count++}`;
  await server.createRepository(name);
  const oid = await server.commitFiles(name, contents, { message: "One" });
  return (await remote.fetchTree({ url: server.url(name) }, { oid, paths })).files;
}

async function filesOfFolder(contents: Contents, paths: readonly string[], how: string): Promise<Files> {
  const folder = mkdtempSync(join(root, "folder-"));
  if (how === "with git") execFileSync("git", ["init", "-q", folder]);
  for (const [path, content] of Object.entries(contents)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (typeof content === "string") writeFileSync(join(folder, path), content);
    else symlinkSync(content.symlink, join(folder, path));
  }
  return (await readLocalArtifact({ cwd: root }, folder, { paths })).files;
}

function textsOf(files: Files): Readonly<Record<string, string>> {
  return Object.fromEntries(files.map(({ path, content }) => [path, Buffer.from(content).toString()]));
}

const to = (symlink: string) => ({ symlink });

describe.each(ways)("%s, a link has the content of its target", (_way, filesOf) => {
  const cases: readonly (readonly [legend: string, contents: Contents, files: Readonly<Record<string, string>>])[] = [
    [
      "a file in the same folder",
      { "app/a.yaml": "a", "app/b.yaml": to("a.yaml") },
      { "app/a.yaml": "a", "app/b.yaml": "a" },
    ],
    [
      "a file outside of the paths",
      { "app/b.yaml": to("../shared/b.yaml"), "shared/b.yaml": "b" },
      { "app/b.yaml": "b" },
    ],
    [
      "a file over the root of the repository and dots",
      { "app/b.yaml": to(".././/app/../b.yaml"), "b.yaml": "b" },
      { "app/b.yaml": "b" },
    ],
    ["a file that is itself excluded", { "app/b.yaml": to("../.sops.yaml"), ".sops.yaml": "b" }, { "app/b.yaml": "b" }],
    [
      "a link that leads to a link",
      { "app/1.yaml": to("2.yaml"), "app/2.yaml": to("../x/3.yaml"), "x/3.yaml": to("4.yaml"), "x/4.yaml": "4" },
      { "app/1.yaml": "4", "app/2.yaml": "4" },
    ],
    [
      "a folder, without its excluded files",
      { "app/base": to("../base"), "base/a.yaml": "a", "base/in/b.yaml": "b", "base/.gitignore": "c" },
      { "app/base/a.yaml": "a", "app/base/in/b.yaml": "b" },
    ],
    [
      "a file through a link to a folder",
      { "app/b.yaml": to("../current/b.yaml"), current: to("releases/v2/"), "releases/v2/b.yaml": "2" },
      { "app/b.yaml": "2" },
    ],
    [
      "a path whose dots start at the target of a link to a folder",
      {
        "app/b.yaml": to("../current/../b.yaml"),
        current: to("releases/v2"),
        "releases/v2/a": "a",
        "releases/b.yaml": "b",
      },
      { "app/b.yaml": "b" },
    ],
    [
      "a folder, if the path itself is a link",
      { app: to("releases/v2"), "releases/v2/b.yaml": "2" },
      { "app/b.yaml": "2" },
    ],
  ];
  test.each(cases)("a link can lead to %s [source.files.links]", async (_legend, contents, files) => {
    expect(textsOf(await filesOf(contents, ["app"]))).toEqual(files);
  });

  test("the artifact has the digest of the same files without links [source.files.links]", async () => {
    const linked = await filesOf({ "app/a.yaml": to("../x/a.yaml"), "x/a.yaml": "a", "app/b": to("../x") }, ["app"]);
    const plain = await filesOf({ "app/a.yaml": "a", "app/b/a.yaml": "a" }, ["app"]);
    expect(treeDigest(linked)).toBe(treeDigest(plain));
  });
});

describe.each(ways)("%s, an unreadable file refuses the whole folder by its path", (_way, filesOf) => {
  const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
  const circle = /is part of a cycle of links/;
  const cases: readonly (readonly [legend: string, contents: Contents, message: RegExp])[] = [
    [
      "an absolute link",
      { "app/a": to("/etc/passwd") },
      /"app\/a" of the repository is a link to "\/etc\/passwd", which leads out/,
    ],
    [
      "a link out of the repository",
      { "app/a": to("../../x"), x: "x" },
      /"app\/a".*leads out of the repository; commit the file or folder itself instead of the link/,
    ],
    [
      "a link out of the repository and in again",
      { "app/a": to(`../../links/app/b`), "app/b": "b" },
      /leads out of the repository/,
    ],
    [
      "a link to nothing",
      { "app/a": to("../x/b"), "x/c": "c" },
      /"app\/a".*link to "..\/x\/b", which is not in the repository/,
    ],
    ["a link through a file", { "app/a": to("../x/c/d"), "x/c": "c" }, /is not in the repository/],
    ["a link to a file as a folder", { "app/a": to("../x/c/"), "x/c": "c" }, /is not in the repository/],
    ["a link to git's own files", { "app/a": to("../.git/config"), "x/c": "c" }, /leads out of the repository/],
    ["a link to itself", { "app/a": to("a"), "app/b": "b" }, circle],
    ["links to each other", { "app/a": to("b"), "app/b": to("a") }, circle],
    ["a link to its own folder", { "app/a": to("."), "app/b": "b" }, /"app\/a" .*is part of a cycle of links/],
    ["a link to a folder around it", { "app/in/a": to("../.."), "app/b": "b" }, circle],
    ["folders that link to each other", { "app/a/x": to("../b"), "app/b/y": to("../a"), "app/c": "c" }, circle],
    [
      "a pointer of Git LFS",
      { "app/in/a.yaml": pointer, "app/b": "b" },
      /"app\/in\/a.yaml" of the repository is a pointer of Git LFS.*git lfs/,
    ],
    [
      "a link to a pointer of Git LFS",
      { "app/a": to("../x"), x: pointer },
      /"app\/a" of the repository is a pointer of Git LFS/,
    ],
  ];
  test.each(cases)("%s refuses the folder [source.files.unreadable]", async (_legend, contents, message) => {
    await expect(filesOf(contents, ["app"])).rejects.toThrow(message);
  });

  test("an unreadable file outside of the paths, or with an excluded name, refuses nothing [source.files.unreadable]", async () => {
    const contents = { "app/a.yaml": "a", "app/x.png": to("/etc/passwd"), "b/a": to("/etc/passwd"), "b/c": pointer };
    expect(textsOf(await filesOf(contents, ["app"]))).toEqual({ "app/a.yaml": "a" });
  });

  test("a file that only mentions pointers of Git LFS is read as it is", async () => {
    const text = `# ${pointer}`;
    expect(textsOf(await filesOf({ "app/a.yaml": text }, ["app"]))).toEqual({ "app/a.yaml": text });
  });

  test("links that expand to 10^6 files are refused", async () => {
    const bomb: Record<string, Content> = { "app/0/a": "a" };
    for (let level = 1; level <= 6; level++)
      for (let each = 0; each < 10; each++) bomb[`app/${level}/${each}`] = to(`../${level - 1}`);
    await expect(filesOf(bomb, ["app"])).rejects.toThrow(/more than 20000 files; narrow spec.paths/);
  });
});

test("a repository in a working folder is a submodule, tracked or not", async () => {
  const folder = mkdtempSync(join(root, "outer-"));
  for (const args of [
    ["init", "-q", folder],
    ["init", "-q", join(folder, "app/sub")],
  ])
    execFileSync("git", args);
  writeFileSync(join(folder, "app", "sub", "a.yaml"), "a");
  writeFileSync(join(folder, "app", "b.yaml"), "b");
  const refused = /"app\/sub" of the repository is a submodule, whose files are not fetched; commit its files/;
  await expect(readLocalArtifact({ cwd: root }, folder, { paths: ["app"] })).rejects.toThrow(refused);
});
