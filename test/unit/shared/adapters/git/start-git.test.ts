import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Matches a call whose first argument is git: by its name, by its path, or behind a program that starts it. */
const starting = /(?:exec|spawn|run)\w*\(\s*["'`](?:[^"'`\s]*\/)?(?:git|env)["'`\s]/i;

test("one file of the product starts git, and one script lists this repository's own files", () => {
  const folders = "{cli,functions,infra,local,scripts,shared}";
  const files = globSync([`${folders}/**/*.{ts,mjs,js}`]);
  expect(files.length).toBeGreaterThan(500);
  const found = files.filter((file) => starting.test(readFileSync(file, "utf8")));
  expect(found.toSorted()).toEqual(["scripts/language/list-files.mjs", "shared/adapters/git/start-git.ts"]);
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
