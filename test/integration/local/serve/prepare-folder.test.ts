import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { prepareFolder } from "#local/serve/prepare-folder.ts";

let home: string;
let repository: string;

beforeEach(() => {
  home = mkdtempSync(join(realpathSync(tmpdir()), "starling-state-"));
  repository = join(home, "shop");
  execFileSync("git", ["init", "-q", repository]);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe("a state folder", () => {
  test("the folder is made for its owner only, and found again", async () => {
    const folder = join(home, "a", "state");
    await prepareFolder(folder);
    expect(modeOf(folder)).toBe(0o700);
    await prepareFolder(folder);
    expect(readdirSync(folder)).toEqual([".gitignore"]);
  });

  test("an existing empty folder may be used, and the access of others is removed", async () => {
    const folder = join(home, "empty");
    mkdirSync(folder, { mode: 0o755 });
    await prepareFolder(folder);
    expect(modeOf(folder)).toBe(0o700);
  });

  test("the folder is found again after a failed first start, and if an older Starling made it", async () => {
    const failed = join(home, "failed");
    await prepareFolder(failed);
    writeFileSync(join(failed, "log"), "it did not start");
    await prepareFolder(failed);
    const older = join(home, "older");
    mkdirSync(older);
    writeFileSync(join(older, "identity.json"), "{}");
    await prepareFolder(older);
    expect(readdirSync(older)).toEqual([".gitignore", "identity.json"]);
  });

  test("a folder that holds other files is refused, and left unchanged", async () => {
    const folder = join(home, "site");
    mkdirSync(folder, { mode: 0o755 });
    writeFileSync(join(folder, "index.html"), "");
    await expect(prepareFolder(folder)).rejects.toMatchObject({
      exit: "wrongInput",
      message: `--state is ${folder}, which contains other files than the state of a machine: index.html`,
      next: `starling local up --state ${folder}/starling-local   (a new or empty folder)`,
    });
    expect(modeOf(folder)).toBe(0o755);
    expect(readdirSync(folder)).toEqual(["index.html"]);
  });

  test("a folder with a foreign .gitignore is refused", async () => {
    const folder = join(home, "site");
    mkdirSync(folder);
    writeFileSync(join(folder, ".gitignore"), "*\n");
    await expect(prepareFolder(folder)).rejects.toThrow("contains other files");
  });
});

describe("a state folder in a git repository", () => {
  const refused = (folder: string) => ({
    exit: "wrongInput",
    message: `--state is ${folder}, in the git repository ${repository}: git would commit the keys of the machine`,
  });

  test.each(["", "state", "a/b/state"])("the folder %j in a git repository is refused, and not made", async (below) => {
    const folder = join(repository, below);
    await expect(prepareFolder(folder)).rejects.toMatchObject(refused(folder));
    expect(readdirSync(repository)).toEqual([".git"]);
  });

  test("the error names the .gitignore entry that allows the folder, and the entry works", async () => {
    const folder = join(repository, "local state");
    await expect(prepareFolder(folder)).rejects.toMatchObject({
      next: `starling local up --state DIR   (outside a repository; or make git ignore the folder: echo '/local state/' >> ${repository}/.gitignore)`,
    });
    writeFileSync(join(repository, ".gitignore"), "/local state/\n");
    await prepareFolder(folder);
    expect(execFileSync("git", ["-C", repository, "status", "--porcelain"]).toString()).toBe("?? .gitignore\n");
  });

  test("the repository is found through a link, in a worktree, and if it is newer than the folder", async () => {
    symlinkSync(repository, join(home, "link"));
    const linked = join(home, "link", "state");
    await expect(prepareFolder(linked)).rejects.toMatchObject(refused(linked));
    const submodule = join(home, "submodule");
    mkdirSync(submodule);
    writeFileSync(join(submodule, ".git"), "gitdir: ../shop/.git\n");
    await expect(prepareFolder(join(submodule, "state"))).rejects.toThrow("in the git repository");

    const earlier = join(home, "later", "state");
    await prepareFolder(earlier);
    writeFileSync(join(earlier, "identity.json"), "{}");
    execFileSync("git", ["init", "-q", join(home, "later")]);
    await prepareFolder(earlier);
    expect(execFileSync("git", ["-C", join(home, "later"), "status", "--porcelain"]).toString()).toBe("");
    rmSync(join(earlier, ".gitignore"));
    await expect(prepareFolder(earlier)).rejects.toThrow("git would commit");
    expect(existsSync(join(earlier, ".gitignore"))).toBe(false);
  });
});
