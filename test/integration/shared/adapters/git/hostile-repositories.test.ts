import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { GitLimits } from "#shared/adapters/git/git-limits.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type RawEntry, type RawRepository, rawRepository } from "#test/support/raw-repository.ts";

const rules = addressRules("127.0.0.1");
const remote = new IsomorphicGitRemote({ rules });

let server: OwnGitServer;
let count = 0;
let name: string;
let made: RawRepository;

beforeAll(async () => {
  server = await startOwnGitServer();
});

afterAll(async () => {
  await server?.stop();
});

beforeEach(async () => {
  name = `hostile-${count++}`;
  await server.createRepository(name);
  made = rawRepository(server.root, name);
});

function fetchTree(oid: string, paths: readonly string[] = ["."], limits: Partial<GitLimits> = {}) {
  return new IsomorphicGitRemote({ rules, limits }).fetchTree({ url: server.url(name) }, { oid, paths });
}

async function pathsOf(oid: string, paths: readonly string[] = ["."]): Promise<readonly string[]> {
  return (await fetchTree(oid, paths)).files.map(({ path }) => path);
}

/** Nests folders: ten folders of ten folders, and so on, with 10^9 entries in all. */
async function bombOf(leaf: RawEntry): Promise<string> {
  let entry = leaf;
  for (let level = 0; level < 9; level++) {
    const names = Array.from({ length: 10 }, (_, index) => ({ ...entry, name: `e${index}` }));
    entry = { mode: "40000", name: "e", oid: await made.tree(names) };
  }
  return entry.oid;
}

describe("a few objects that expand to 10^9 entries", () => {
  const files = "spec.paths contain more than 20000 files";
  const leaves: readonly (readonly [legend: string, mode: RawEntry["mode"], ...refused: [string, string]])[] = [
    ["files", "100644", "GitTooLarge", files],
    ["links", "120000", "GitTooLarge", "more than 200000 files and folders are on the way to spec.paths"],
    ["submodules", "160000", "GitPathRefused", 'e0/e0/e0/e0/e0/e0/e0" of the repository is a submodule'],
  ];
  test.each(leaves)(
    "a repository whose few objects expand to 10^9 %s is refused",
    async (_legend, mode, code, message) => {
      const leaf = await made.blob("../../../../../../../../../a.yaml");
      const tree = await bombOf({ mode, name: "e", oid: leaf });
      const oid = await made.commit(
        await made.tree([
          { mode: "100644", name: "a.yaml", oid: leaf },
          { mode: "40000", name: "bomb", oid: tree },
        ]),
      );
      await expect(fetchTree(oid)).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    },
  );

  test("objects that expand to 10^9 entries do no harm outside of spec.paths", async () => {
    const file = { mode: "100644", name: "a.yaml", oid: await made.blob("a: 1\n") } as const;
    const entries = [
      { mode: "40000", name: "bomb", oid: await bombOf({ mode: "120000", name: "e", oid: file.oid }) },
      { mode: "40000", name: "deploy", oid: await made.tree([file]) },
    ] as const;
    expect(await pathsOf(await made.commit(await made.tree(entries)), ["deploy"])).toEqual(["deploy/a.yaml"]);
  });

  test("a repository with a path of more than 1024 bytes in spec.paths is refused", async () => {
    let oid = await made.tree([]);
    for (let level = 0; level < 300; level++) oid = await made.tree([{ mode: "40000", name: "dddd", oid }]);
    await expect(fetchTree(await made.commit(oid))).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringMatching(/a path of 1029 bytes, "dddd\/dddd.*at most 1024 are taken; narrow spec.paths/),
    });
  });
});

describe("names", () => {
  const refused: readonly (readonly [legend: string, name: string | Buffer])[] = [
    ["..", ".."],
    [".", "."],
    ["with a slash", "../../etc/cron.d/x"],
    ["with a backslash", "..\\x.yaml"],
    ["with a line feed", "a\nb.yaml"],
    ["with an escape sequence", "\u001b[2Ja.yaml"],
  ];
  test.each(refused)("a file name %s is refused [source.files.names]", async (_legend, entry) => {
    const tree = await made.tree([{ mode: "100644", name: entry, oid: await made.blob("a: 1\n") }]);
    const outer = await made.tree([{ mode: "40000", name: "deploy", oid: tree }]);
    const oid = await made.commit(outer);
    await expect(fetchTree(oid)).rejects.toMatchObject({
      code: "GitPathRefused",
      retry: "permanent",
      message: expect.stringMatching(
        /^the path "deploy\/.*is not a valid file name on every system; rename it, or narrow spec.paths$/,
      ),
    });
    await expect(pathsOf(oid, ["other"])).resolves.toEqual([]);
  });

  test("a name that two entries of a folder have is refused [source.files.names]", async () => {
    const blob = await made.blob("a: 1\n");
    const folder = await made.tree([{ mode: "100644", name: "b.yaml", oid: blob }]);
    for (const second of [
      { mode: "100644", name: "a", oid: blob },
      { mode: "40000", name: "a", oid: folder },
    ] as const) {
      const oid = await made.commit(await made.tree([{ mode: "100644", name: "a", oid: blob }, second]));
      await expect(fetchTree(oid)).rejects.toMatchObject({
        code: "GitPathRefused",
        message: expect.stringContaining("twice"),
      });
    }
  });

  test("two names that differ only in case are two files [source.files.names]", async () => {
    const oid = await made.blob("a: 1\n");
    const tree = await made.tree([
      { mode: "100644", name: "A.yaml", oid },
      { mode: "100644", name: "a.yaml", oid },
    ]);
    expect(await pathsOf(await made.commit(tree))).toEqual(["A.yaml", "a.yaml"]);
  });

  test("files of version control are no part of an artifact", async () => {
    const oid = await made.blob("a: 1\n");
    const config = await made.tree([{ mode: "100644", name: "config", oid }]);
    const tree = await made.tree([
      { mode: "40000", name: ".git", oid: config },
      { mode: "100644", name: "a.yaml", oid },
    ]);
    expect(await pathsOf(await made.commit(tree))).toEqual(["a.yaml"]);
  });
});

describe("an entry that is no file, folder or link", () => {
  const modes: readonly (readonly [mode: RawEntry["mode"], problem: string])[] = [
    ["160000", "is a submodule, whose files are not fetched; commit its files in the repository itself"],
    ["60000", "has the mode 60000, which is not a file's; remove it"],
  ];
  test.each(modes)("an entry of the mode %s refuses the revision by its path", async (mode, problem) => {
    const oid = await made.blob("a: 1\n");
    const tree = await made.tree([{ mode, name: "x", oid }]);
    const commit = await made.commit(
      await made.tree([
        { mode: "100644", name: "a.yaml", oid },
        { mode: "40000", name: "app", oid: tree },
        { mode: "120000", name: "z", oid: await made.blob("app/x") },
      ]),
    );
    const refused = (path: string) => ({
      code: "GitPathRefused",
      retry: "permanent",
      message: `the path "${path}" of the repository ${problem}, or narrow spec.paths`,
    });
    await expect(fetchTree(commit)).rejects.toMatchObject(refused("app/x"));
    await expect(fetchTree(commit, ["app/x/deep"])).rejects.toMatchObject(refused("app/x"));
    await expect(fetchTree(commit, ["z"])).rejects.toMatchObject(refused("z"));
    expect(await pathsOf(commit, ["a.yaml"])).toEqual(["a.yaml"]);
  });
});

describe("commits and tags", () => {
  test("the texts of a commit are cut and cleaned, and an impossible time becomes 1970", async () => {
    const author = `\u001b[31mEve\u001b[0m ${"x".repeat(5000)} <e@example.com> 99999999999999999 +0000`;
    const oid = await made.commit(await made.tree([]), {
      author,
      message: `\u001b]0;pwned\u0007${"y".repeat(200_000)}`,
    });
    const { commit } = await fetchTree(oid);
    expect(commit.subject).toMatch(/^\\u001b\]0;pwned\\u0007y{470,490}\.\.\.$/);
    expect(commit.authorName).toMatch(/^\\u001b\[31mEve\\u001b\[0m x{460,490}\.\.\.$/);
    expect(commit.committedAt).toBe("1970-01-01T00:00:00.000Z");
  });

  async function tagOf(depth: number, object: string, type = "commit"): Promise<string> {
    const kind = depth === 1 ? type : "tag";
    const below = depth === 1 ? object : await tagOf(depth - 1, object, type);
    return made.object("tag", `object ${below}\ntype ${kind}\ntag t${depth}\ntagger A <a@x> 1 +0000\n\nt\n`);
  }

  test("a chain of tags leads to its commit, unless it is too long", async () => {
    const commit = await made.commit(await made.tree([]));
    const five = await tagOf(5, commit);
    await made.git("update-ref", "refs/tags/five", five);
    expect((await fetchTree(five)).commit.oid).toBe(commit);
    const many = await tagOf(12, commit);
    await made.git("update-ref", "refs/tags/many", many);
    await expect(fetchTree(many)).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("a tag that leads through more than 10 other tags"),
    });
  });

  test("a tag of a file is no commit", async () => {
    const tag = await tagOf(1, await made.blob("a: 1\n"), "blob");
    await made.git("update-ref", "refs/tags/file", tag);
    await expect(fetchTree(tag)).rejects.toMatchObject({
      code: "GitRefNotFound",
      message: expect.stringContaining("is a blob, but a commit is expected"),
    });
  });
});

describe("references", () => {
  const listing = { url: "" };
  beforeEach(async () => {
    await made.commit(await made.tree([]));
    listing.url = server.url(name);
  });

  test("a listing with too many references is refused", async () => {
    for (const tag of ["v1", "v2", "v3", "v4"]) await made.git("tag", tag, "main");
    const limited = new IsomorphicGitRemote({ rules, limits: { maxRefs: 3 } });
    await expect(limited.listRefs(listing, ["refs/tags/"])).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("lists 4 references; at most 3 are read; delete references"),
    });
    expect(await limited.listRefs(listing, ["refs/tags/v1"])).toHaveLength(1);
  });

  test("a listing with a reference whose name is too long is refused", async () => {
    const long = "n".repeat(150);
    await made.git("update-ref", `refs/heads/x/${long}/${long}`, "main");
    await expect(remote.listRefs(listing, ["refs/heads/x/"])).rejects.toMatchObject({
      code: "GitTooLarge",
      message: expect.stringContaining("a reference with a name of 314 bytes, refs/heads/x/nnn"),
    });
    expect(await remote.listRefs(listing, ["refs/heads/main"])).toHaveLength(1);
  });
});

describe("HEAD", () => {
  let main: string;
  beforeEach(async () => {
    main = await made.commit(await made.tree([{ mode: "100644", name: "a.yaml", oid: await made.blob("a: 1\n") }]));
  });

  test("a HEAD that leads to a missing branch is left out, and other branches can be used", async () => {
    await made.git("symbolic-ref", "HEAD", "refs/heads/gone");
    const url = server.url(name);
    expect(await remote.listRefs({ url }, ["refs/heads/main"])).toEqual([{ ref: "refs/heads/main", oid: main }]);
    expect(await remote.listRefs({ url }, ["HEAD"])).toEqual([]);
    expect(await pathsOf(main)).toEqual(["a.yaml"]);
  });

  test("a detached HEAD is a commit without a branch", async () => {
    await writeFile(join(made.folder, "HEAD"), `${main}\n`);
    expect(await remote.listRefs({ url: server.url(name) }, ["HEAD"])).toEqual([{ ref: "HEAD", oid: main }]);
    expect(await pathsOf(main)).toEqual(["a.yaml"]);
  });
});

test("the deltas of a real repository give the same files as in git", async () => {
  const contents = new Map<string, string>();
  for (let index = 0; index < 60; index++) {
    const lines = Array.from({ length: 200 }, (_, line) => `key-${line}: ${line % (index + 2) === 0 ? index : line}`);
    contents.set(`deploy/${index}.yaml`, `${lines.join("\n")}\n`);
  }
  const oid = await server.commitFiles(name, Object.fromEntries(contents), { message: "Many" });
  await made.git("repack", "-adfq", "--depth=50", "--window=50");
  expect(Number(/in-pack: (\d+)/.exec(await made.git("count-objects", "-v"))?.[1])).toBeGreaterThan(60);
  const { files } = await fetchTree(oid);
  expect(new Map(files.map(({ path, content }) => [path, Buffer.from(content).toString()]))).toEqual(contents);
});

test("a fetch writes nothing to the disk", async () => {
  const own = await mkdtemp(join(tmpdir(), "starling-test-"));
  vi.stubEnv("TMPDIR", own);
  try {
    const oid = await server.commitFiles(name, { "a.yaml": "a: 1\n" }, { message: "One" });
    const seen: string[] = [];
    const watch = setInterval(async () => seen.push(...(await readdir(own))), 1);
    await fetchTree(oid);
    clearInterval(watch);
    expect(seen).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
    await rm(own, { recursive: true, force: true });
  }
});
