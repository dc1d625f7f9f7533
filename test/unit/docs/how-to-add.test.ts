import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("docs/contributing/how-to-add.md", "utf8");
const code = /(?:^|[`\s])((?:shared|functions|cli|local|infra|test|docs|scripts)\/[\w./-]*\w)/gm;
const paths = [...page.matchAll(code)].map(([, path = ""]) => path);

test("docs/contributing/how-to-add.md names only files and folders that exist", () => {
  expect(paths.length).toBeGreaterThan(80);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});
