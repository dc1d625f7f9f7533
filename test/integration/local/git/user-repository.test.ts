import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { adoptRepository, servedName } from "#local/git/user-repository.ts";
import { defined } from "#shared/base/defined.ts";

const home = mkdtempSync(join(tmpdir(), "starling-adopt-"));
const app = join(home, "my app+");
let server: GitServer;
let head = "";

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];
  return execFileSync("git", ["-C", folder, ...identity, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

beforeAll(async () => {
  server = await startGitServer({ root: join(home, "served"), tls: await createTlsCertificate() });
  mkdirSync(join(app, "deploy"), { recursive: true });
  writeFileSync(join(app, "deploy", "a.yaml"), "{}\n");
  git(app, "init", "-q", "-b", "trunk", ".");
  git(app, "add", ".");
  git(app, "commit", "-qm", "Begin");
  git(app, "tag", "-am", "first", "v1");
  head = git(app, "rev-parse", "HEAD").trim();
  mkdirSync(join(home, "empty"));
  git(join(home, "empty"), "init", "-q", ".");
});

afterAll(async () => {
  await server.stop();
  rmSync(home, { recursive: true, force: true });
});

describe("adoptRepository", () => {
  test("adoptRepository runs no program that the folder names as its file monitor", async () => {
    const folder = join(home, "from-elsewhere");
    const ran = join(home, "ran");
    mkdirSync(folder);
    writeFileSync(join(folder, "a.yaml"), "{}\n");
    git(folder, "init", "-q", ".");
    git(folder, "add", ".");
    git(folder, "commit", "-qm", "Begin");
    const program = join(home, "program.sh");
    writeFileSync(program, `#!/bin/sh\ntouch "${ran}"\n`, { mode: 0o755 });
    git(folder, "config", "core.fsmonitor", program);
    await adoptRepository(server, { repo: folder, path: "." });
    expect(existsSync(ran)).toBe(false);
  });

  const hostile: readonly (readonly [legend: string, set: (folder: string, program: string) => void])[] = [
    [
      "as a filter of its files",
      (folder, program) => {
        writeFileSync(join(folder, ".gitattributes"), "* filter=mine\n");
        git(folder, "config", "filter.mine.clean", program);
        git(folder, "config", "filter.mine.required", "true");
      },
    ],
    [
      "as a process that filters",
      (folder, program) => {
        writeFileSync(join(folder, ".git", "info", "attributes"), "* filter=mine\n");
        git(folder, "config", "filter.mine.process", program);
      },
    ],
    [
      "in included settings",
      (folder, program) => {
        writeFileSync(join(folder, "more"), `[filter "mine"]\nclean = ${program}\n`);
        writeFileSync(join(folder, ".gitattributes"), "* filter=mine\n");
        git(folder, "config", "includeIf.gitdir:**.path", join(folder, "more"));
      },
    ],
    [
      "as the file monitor of a submodule",
      (folder, program) => {
        const inner = join(folder, "inner");
        mkdirSync(inner);
        git(inner, "init", "-q", ".");
        writeFileSync(join(inner, "b"), "b");
        git(inner, "add", ".");
        git(inner, "commit", "-qm", "Begin");
        git(folder, "add", "inner");
        git(folder, "commit", "-qm", "Have a submodule");
        git(inner, "config", "core.fsmonitor", program);
        writeFileSync(join(inner, "b"), "changed");
      },
    ],
    [
      "as the source of its objects",
      (folder, program) => {
        git(folder, "config", "core.repositoryFormatVersion", "1");
        git(folder, "config", "extensions.partialClone", "there");
        git(folder, "config", "remote.there.url", home);
        git(folder, "config", "remote.there.promisor", "true");
        git(folder, "config", "remote.there.uploadpack", program);
        const blob = git(folder, "rev-parse", "HEAD:a.yaml").trim();
        rmSync(join(folder, ".git", "objects", blob.slice(0, 2), blob.slice(2)), { force: true });
      },
    ],
    [
      "as its hooks",
      (folder, program) => {
        git(folder, "config", "core.hooksPath", home);
        for (const hook of ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"]) {
          copyFileSync(program, join(home, hook));
          chmodSync(join(home, hook), 0o755);
          copyFileSync(program, join(folder, ".git", "hooks", hook));
        }
      },
    ],
  ];
  test.each(hostile)("adoptRepository runs no program that the folder names %s", async (_legend, set) => {
    const folder = mkdtempSync(join(home, "hostile-"));
    const ran = join(folder, ".git", "ran");
    writeFileSync(join(folder, "a.yaml"), "{}\n");
    git(folder, "init", "-q", ".");
    git(folder, "add", ".");
    git(folder, "commit", "-qm", "Begin");
    const program = join(folder, ".git", "program.sh");
    writeFileSync(program, `#!/bin/sh\ntouch "${ran}"\ncat\n`, { mode: 0o755 });
    set(folder, program);
    rmSync(ran, { force: true });
    // The file keeps its size, so that git has to read it to see the change.
    writeFileSync(join(folder, "a.yaml"), "[]\n");
    const repository = await adoptRepository(server, { repo: folder, path: "." }).catch(() => undefined);
    expect(existsSync(ran)).toBe(false);
    if (repository !== undefined) expect(repository.warning).toContain("uncommitted changes");
  });

  test.each([
    { ref: undefined, found: undefined },
    { ref: "HEAD", found: undefined },
    { ref: "trunk", found: { branch: "trunk" } },
    { ref: "v1", found: { tag: "v1" } },
  ])("adoptRepository finds the reference $ref", async ({ ref, found }) => {
    const wish = { repo: app, path: "./deploy/", ...defined({ ref }) };
    const repository = await adoptRepository(server, wish);
    expect(repository).toMatchObject({ url: server.url("my-app-"), ref: found, warning: undefined });
    expect(repository.description).toContain(head.slice(0, 12));
    rmSync(join(home, "served", "my-app-.git"), { recursive: true });
  });

  test("adoptRepository ignores uncommitted files that only the clone itself excludes", async () => {
    const folder = mkdtempSync(join(home, "excluding-"));
    git(folder, "init", "-q", ".");
    git(folder, "commit", "-q", "--allow-empty", "-m", "Begin");
    writeFileSync(join(folder, ".git", "info", "exclude"), "notes\n");
    writeFileSync(join(folder, "notes"), "mine");
    expect((await adoptRepository(server, { repo: folder })).warning).toBeUndefined();
    rmSync(join(home, "served", `${servedName(folder)}.git`), { recursive: true });
    writeFileSync(join(folder, "more"), "mine");
    expect((await adoptRepository(server, { repo: folder })).warning).toContain("uncommitted changes");
  });

  test("adoptRepository finds a commit by a prefix of its id, and reports uncommitted changes", async () => {
    writeFileSync(join(app, "deploy", "b.yaml"), "{}\n");
    const repository = await adoptRepository(server, { repo: app, ref: head.slice(0, 9) });
    expect(repository.ref).toEqual({ commit: head });
    expect(repository.warning).toContain("uncommitted changes");
  });

  test.each([
    { wish: { repo: join(home, "nowhere") }, words: `there is no ${join(home, "nowhere")}` },
    { wish: { repo: join(app, "deploy", "a.yaml") }, words: "a file; give the folder" },
    { wish: { repo: home }, words: "it is not a git repository" },
    { wish: { repo: join(home, "empty") }, words: "it has no commit; commit the files" },
    { wish: { repo: join(app, "deploy") }, words: `give --repo ${app} --path deploy` },
    { wish: { repo: app, ref: "nope" }, words: "no branch, tag or commit of that name; it has trunk" },
    { wish: { repo: app, path: "nope" }, words: "has no such folder; it has deploy" },
    { wish: { repo: "git@git.example.com:app" }, words: "only https:// URLs are supported" },
    { wish: { repo: "https://127.0.0.1:9/x.git" }, words: "cannot list its references" },
  ])("adoptRepository refuses $wish", async ({ wish, words }) => {
    await expect(adoptRepository(server, wish)).rejects.toThrow(words);
  });
});

test.each([
  ["/srv/app.git", "app"],
  ["/srv/podinfo+1", "podinfo-1"],
  ["/srv/.dotfiles", "dotfiles"],
  ["/srv/日本", "repository"],
])("the folder %s is served under the name %s", (folder, name) => {
  expect(servedName(folder)).toBe(name);
});
