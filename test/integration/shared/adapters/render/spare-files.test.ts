import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makeScratchFolder, removeScratchFolder, writeTree } from "#shared/adapters/render/scratch-folder.ts";
import { SpareFiles } from "#shared/adapters/render/spare-files.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-test-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function inodesOf(scratch: string, names: readonly string[]): readonly number[] {
  return names.map((name) => statSync(join(scratch, name)).ino).sort();
}

/** For each new file, ext4 searches all files that were deleted lately, so that reused files are faster. */
test("the next task reuses the files that a task has written and removed", async () => {
  // Other files of tests, which share their modules with this one, may have removed the folder of the spare files.
  vi.resetModules();
  const { makeScratchFolder, removeScratchFolder, writeTree } = await import(
    "#shared/adapters/render/scratch-folder.ts"
  );
  const first = await makeScratchFolder("render");
  writeTree(
    join(first, "tree"),
    new Map([
      ["a.yaml", bytes("password: long and secret")],
      ["b/c.yaml", bytes("b: 1")],
    ]),
  );
  const before = inodesOf(join(first, "tree"), ["a.yaml", "b/c.yaml"]);
  removeScratchFolder(first);
  const second = await makeScratchFolder("render");
  writeTree(
    join(second, "other"),
    new Map([
      ["x.yaml", bytes("x: 1")],
      ["y.yaml", bytes("")],
    ]),
  );
  expect(inodesOf(join(second, "other"), ["x.yaml", "y.yaml"])).toEqual(before);
  expect(readFileSync(join(second, "other", "x.yaml"), "utf8")).toBe("x: 1");
  expect(readFileSync(join(second, "other", "y.yaml"), "utf8")).toBe("");
  expect(readdirSync(second, { recursive: true }).sort()).toEqual(["other", "other/x.yaml", "other/y.yaml"]);
  expect(readdirSync(dirname(first))).not.toContain(basename(first));
  removeScratchFolder(second);
});

test("a second write to the same file of a tree is an error", async () => {
  const scratch = await makeScratchFolder("render");
  writeTree(join(scratch, "tree"), new Map([["a.yaml", bytes("a: 1")]]));
  expect(() => writeTree(join(scratch, "tree"), new Map([["a.yaml", bytes("a: 2")]]))).toThrow("EEXIST");
  expect(readFileSync(join(scratch, "tree", "a.yaml"), "utf8")).toBe("a: 1");
  removeScratchFolder(scratch);
});

test("a link, a folder and a file with a second name are neither emptied nor reused", () => {
  writeFileSync(join(folder, "kept"), "kept");
  symlinkSync(join(folder, "kept"), join(folder, "symbolic"));
  writeFileSync(join(folder, "linked"), "linked");
  linkSync(join(folder, "linked"), join(folder, "hard"));
  mkdirSync(join(folder, "folder"));
  const spare = new SpareFiles();
  for (const name of ["symbolic", "hard", "folder", "absent"]) spare.give(join(folder, name));
  expect(spare.take(join(folder, "new"), bytes("new"))).toBe(false);
  expect(readFileSync(join(folder, "kept"), "utf8")).toBe("kept");
  expect(readFileSync(join(folder, "linked"), "utf8")).toBe("linked");
  expect(readdirSync(folder).sort()).toEqual(["folder", "hard", "kept", "linked", "symbolic"]);
});

/** A program that prints the content of the temporary folder, and of each folder in it. */
const worker = `
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { makeScratchFolder, removeScratchFolder, writeTree } from "#shared/adapters/render/scratch-folder.ts";
const scratch = await makeScratchFolder("chart");
writeTree(join(scratch, "tree"), new Map([["secret.yaml", new TextEncoder().encode("password: a")]]));
removeScratchFolder(scratch);
const [left, ...others] = readdirSync(tmpdir());
const names = readdirSync(join(tmpdir(), left));
console.log(JSON.stringify({ left, others, texts: names.map((name) => name + "=" + readFileSync(join(tmpdir(), left, name), "utf8")) }));
if (process.argv.includes("die")) process.kill(process.pid, "SIGKILL");
`;

function work(...args: readonly string[]): { left: string; others: string[]; texts: string[] } {
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", worker, "--", ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  return JSON.parse(stdout) as ReturnType<typeof work>;
}

test("only an empty spare file stays after a task, until the process ends", () => {
  const { left, others, texts } = work();
  expect({ purpose: left.slice(0, "starling-spare-".length), others, texts }).toEqual({
    purpose: "starling-spare-",
    others: [],
    texts: ["0="],
  });
  expect(readdirSync(folder)).toEqual([]);
});

test("the next process removes the spare files of a killed one", () => {
  const { left } = work("die");
  expect(readdirSync(folder)).toEqual([left]);
  expect(work().others).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});
