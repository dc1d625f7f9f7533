import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** A call whose first argument is git, by its name, its path, or behind a program that starts it. */
const starting = /(?:exec|spawn|run)\w*\(\s*["'`](?:[^"'`\s]*\/)?(?:git|env)["'`\s]/i;

test("No file but one starts git", () => {
  const rooms = "{cli,functions,infra,local,scripts,shared}";
  const files = globSync([`${rooms}/**/*.{ts,mjs,js}`]);
  expect(files.length).toBeGreaterThan(500);
  const found = files.filter((file) => starting.test(readFileSync(file, "utf8")));
  expect(found).toEqual(["shared/adapters/git/start-git.ts"]);
});

test.each([
  'spawn("git", ["status"])',
  "execFileSync('git', [])",
  'execSync("git status")',
  'run("env", ["git"])',
  'spawn(\n  "/usr/bin/git",',
])("%j starts git", (line) => {
  expect(starting.test(line)).toBe(true);
});
