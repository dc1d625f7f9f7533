import { execFile, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/run.mjs", import.meta.url));

/** A clone that needs one package and contains it, so that nothing is fetched. */
let clone: string;
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "starling-install-"));
  write("tool/tool.mjs", 'export const word = "from the tool";\n');
  write("cli/main.ts", 'import { word } from "tool";\nconsole.log("hello", word, process.argv[2]);\n');
  lockTool("1.0.0");
  mkdirSync(join(clone, "scripts"));
  cpSync(script, join(clone, "scripts/run.mjs"));
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true });
  writeFileSync(join(clone, path), text);
}

/** @param asked - further dependencies of the manifest that are not in the lock file. */
function lockTool(version: string, asked: Readonly<Record<string, string>> = {}): void {
  const manifest = { name: "clone", version: "1.0.0", type: "module", workspaces: ["tool"] };
  const dependencies = { tool: "file:tool" };
  write("tool/package.json", JSON.stringify({ name: "tool", version, type: "module", main: "tool.mjs" }));
  write("package.json", JSON.stringify({ ...manifest, dependencies: { ...dependencies, ...asked } }));
  const packages = {
    "": { ...manifest, dependencies },
    "node_modules/tool": { resolved: "tool", link: true },
    tool: { version },
  };
  write("package-lock.json", JSON.stringify({ name: "clone", version: "1.0.0", lockfileVersion: 3, packages }));
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function starling(word: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const parameters = [join(clone, "scripts/run.mjs"), "starling", word];
  return new Promise((resolve) => {
    execFile(process.execPath, parameters, { env: { ...process.env, ...env } }, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });
}

const installed = () => existsSync(join(clone, "node_modules/tool/tool.mjs"));
const underWay = () => readdirSync(join(clone, ".starling/installs"));

test("the first command of a fresh clone installs the dependencies, and the next one does not", async () => {
  const first = await starling("one");
  expect(first).toMatchObject({ code: 0, out: "hello from the tool one\n" });
  expect(first.err).toContain("Installing the dependencies");
  expect(underWay()).toEqual([]);
  expect(await starling("two")).toEqual({ code: 0, out: "hello from the tool two\n", err: "" });
});

test("several first commands at once all succeed, and leave no temporary files", async () => {
  const ended = await Promise.all(["one", "two", "three"].map((word) => starling(word)));
  expect(ended.map(({ code, out }) => ({ code, out }))).toEqual([
    { code: 0, out: "hello from the tool one\n" },
    { code: 0, out: "hello from the tool two\n" },
    { code: 0, out: "hello from the tool three\n" },
  ]);
  expect(underWay()).toEqual([]);
});

test("changed packages of the lock file replace the old ones", async () => {
  await starling("one");
  write("node_modules/left/over.txt", "of before");
  lockTool("1.0.1");
  expect(await starling("two")).toMatchObject({ code: 0, out: "hello from the tool two\n" });
  expect(existsSync(join(clone, "node_modules/left"))).toBe(false);
  expect(underWay()).toEqual([]);
});

test("the dependencies are installed again if the locked Node is missing, although its package is optional", async () => {
  await starling("one");
  const lock = JSON.parse(readFileSync(join(clone, "package-lock.json"), "utf8"));
  const node = `node_modules/node-${process.platform}-${process.arch}`;
  lock.packages[node] = { version: "24.0.0", optional: true, resolved: "file:nowhere.tgz", integrity: "sha512-AAAA" };
  write("package-lock.json", JSON.stringify(lock));
  const ended = await starling("two");
  expect(ended.err).toContain("Installing the dependencies");
});

test("a failed install is reported, starts no command, and keeps the old packages", async () => {
  write("node_modules/left/over.txt", "of before");
  lockTool("1.0.0", { "another-one": "file:nowhere" });
  const ended = await starling("one");
  expect(ended).toMatchObject({ code: 1, out: "" });
  expect(ended.err).toContain("npm ci failed (exit code 1); nothing was started");
  expect(existsSync(join(clone, "node_modules/left/over.txt"))).toBe(true);
  expect(underWay()).toEqual([]);
});

test("the next command installs after an install was killed, and removes its leftovers", async () => {
  const npm = join(clone, "npm.js");
  write(
    "npm.js",
    'import { writeFileSync } from "node:fs";\nwriteFileSync("begun", "");\nsetInterval(() => {}, 1000);\n',
  );
  const env = { ...process.env, npm_execpath: npm };
  const killed = spawn(process.execPath, [join(clone, "scripts/run.mjs"), "starling", "one"], { env, detached: true });
  const ended = new Promise((resolve) => killed.once("exit", resolve));
  await vi.waitFor(
    () => expect(existsSync(join(clone, ".starling/installs", underWay()[0] ?? "", "begun"))).toBe(true),
    {
      timeout: 30_000,
    },
  );
  process.kill(-(killed.pid ?? 0), "SIGKILL");
  await ended;
  expect(installed()).toBe(false);
  expect(await starling("two")).toMatchObject({ code: 0, out: "hello from the tool two\n" });
  const [left = ""] = underWay();
  expect(left).not.toBe("");
  const longAgo = new Date(Date.now() - 7_200_000);
  utimesSync(join(clone, ".starling/installs", left), longAgo, longAgo);
  rmSync(join(clone, "node_modules"), { recursive: true });
  await starling("three");
  expect(underWay()).toEqual([]);
});
