import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
  test("runs no program that the folder names", async () => {
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

  test.each([
    { ref: undefined, found: undefined },
    { ref: "HEAD", found: undefined },
    { ref: "trunk", found: { branch: "trunk" } },
    { ref: "v1", found: { tag: "v1" } },
  ])("finds $ref", async ({ ref, found }) => {
    const wish = { repo: app, path: "./deploy/", ...defined({ ref }) };
    const repository = await adoptRepository(server, wish);
    expect(repository).toMatchObject({ url: server.url("my-app-"), ref: found, warning: undefined });
    expect(repository.description).toContain(head.slice(0, 12));
    rmSync(join(home, "served", "my-app-.git"), { recursive: true });
  });

  test("finds a commit by its beginning, and says what is in none", async () => {
    writeFileSync(join(app, "deploy", "b.yaml"), "{}\n");
    const repository = await adoptRepository(server, { repo: app, ref: head.slice(0, 9) });
    expect(repository.ref).toEqual({ commit: head });
    expect(repository.warning).toContain("changes that are in no commit");
  });

  test.each([
    { wish: { repo: "/nowhere" }, words: "there is no /nowhere" },
    { wish: { repo: join(app, "deploy", "a.yaml") }, words: "a file; give the folder" },
    { wish: { repo: home }, words: "no git repository" },
    { wish: { repo: join(home, "empty") }, words: "it has no commit yet" },
    { wish: { repo: join(app, "deploy") }, words: `give --repo ${app} --path deploy` },
    { wish: { repo: app, ref: "nope" }, words: "no branch, tag or commit of that name; it has trunk" },
    { wish: { repo: app, path: "nope" }, words: "has no such folder; it has deploy" },
    { wish: { repo: "git@git.example.com:app" }, words: "only https:// URLs are followed" },
    { wish: { repo: "https://127.0.0.1:9/x.git" }, words: "it cannot be listed" },
  ])("refuses $wish", async ({ wish, words }) => {
    await expect(adoptRepository(server, wish)).rejects.toThrow(words);
  });
});

test.each([
  ["/srv/app.git", "app"],
  ["/srv/podinfo+1", "podinfo-1"],
  ["/srv/.dotfiles", "dotfiles"],
  ["/srv/日本", "repository"],
])("serves %s as %s", (folder, name) => {
  expect(servedName(folder)).toBe(name);
});
