import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { gitLogin } from "#cli/seeing/git-login.ts";
import { readLocalArtifact } from "#cli/seeing/local-artifact.ts";

const home = mkdtempSync(join(tmpdir(), "starling-folder-"));
let folder = "";

function git(...args: readonly string[]): void {
  const identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];
  execFileSync("git", ["-C", folder, ...identity, ...args], { stdio: "ignore" });
}

async function pathsOf(paths: readonly string[] = ["."]): Promise<readonly string[]> {
  const { files } = await readLocalArtifact({ cwd: home }, folder, { paths });
  return files.map(({ path }) => path).toSorted();
}

beforeEach(() => {
  folder = mkdtempSync(join(home, "of-"));
  mkdirSync(join(folder, "deploy"));
  writeFileSync(join(folder, "deploy", "a.yaml"), "{}\n");
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("a working folder of a stranger", () => {
  test("a folder is refused if a link in the place of a folder leads out of it", async () => {
    const outside = mkdtempSync(join(home, "outside-"));
    writeFileSync(join(outside, "a.yaml"), "password: hunter2\n");
    git("init", "-q", ".");
    git("add", ".");
    writeFileSync(join(folder, "b.yaml"), "{}\n");
    rmSync(join(folder, "deploy"), { recursive: true });
    symlinkSync(outside, join(folder, "deploy"));
    await expect(pathsOf()).rejects.toThrow(/^GitPathRefused: .*"deploy" of the repository is a link to .*leads out/);
    expect(await pathsOf(["b.yaml"])).toEqual(["b.yaml"]);
  });

  test("a folder is refused if its index names a file outside of it", async () => {
    writeFileSync(join(home, "beside.yaml"), "password: hunter2\n");
    git("init", "-q", ".");
    git("add", ".");
    // A name of the same length in the place of the one that git would write.
    writeFileSync(join(folder, "xx_beside.yaml"), "{}\n");
    git("add", ".");
    const index = execFileSync("sh", ["-c", `sed 's#xx_beside.yaml#../beside.yaml#' .git/index`], { cwd: folder });
    const sum = createHash("sha1").update(index.subarray(0, -20)).digest();
    writeFileSync(join(folder, ".git", "index"), Buffer.concat([index.subarray(0, -20), sum]));
    rmSync(join(folder, "xx_beside.yaml"));
    await expect(pathsOf()).rejects.toThrow(/"\.\." of the repository is not a valid file name/);
    expect(await pathsOf(["deploy"])).toEqual(["deploy/a.yaml"]);
  });

  test.each(["with git", "without git"])("a folder yields only files that git would commit, %s", async (how) => {
    if (how === "with git") git("init", "-q", ".");
    execFileSync("sh", ["-c", 'mkfifo "$0"', join(folder, "deploy", "pipe.yaml")]);
    expect(await pathsOf(["deploy"])).toEqual(["deploy/a.yaml"]);
    writeFileSync(join(folder, "deploy", "two\nlines.yaml"), "{}\n");
    await expect(pathsOf(["deploy"])).rejects.toThrow(
      /"deploy\/two\\nlines.yaml" of the repository is not a valid file name/,
    );
  });

  test("a folder runs no program that its git settings name", async () => {
    const ran = join(home, "ran");
    const program = join(home, "program.sh");
    writeFileSync(program, `#!/bin/sh\ntouch "${ran}"\n`, { mode: 0o755 });
    git("init", "-q", ".");
    git("add", ".");
    git("config", "core.fsmonitor", program);
    git("config", "core.untrackedCache", "true");
    git("config", "core.hooksPath", home);
    rmSync(ran, { force: true });
    expect(await pathsOf()).toEqual(["deploy/a.yaml"]);
    expect(existsSync(ran)).toBe(false);
  });

  test("a folder's git settings are not used to ask for credentials", async () => {
    const ran = join(home, "asked");
    git("init", "-q", ".");
    git("config", "credential.helper", `!touch "${ran}"; :`);
    const io = { env: process.env, cwd: folder };
    await gitLogin(io, "https://git.example.invalid/app.git");
    expect(existsSync(ran)).toBe(false);
  });

  test("a folder is not read if it has more bytes than an artifact may have", async () => {
    writeFileSync(join(folder, "deploy", "big.yaml"), "");
    truncateSync(join(folder, "deploy", "big.yaml"), 300_000_000);
    await expect(pathsOf()).rejects.toThrow(/more than \d+ bytes/);
  });
});
