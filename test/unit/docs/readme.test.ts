import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
const readme = readFileSync("README.md", "utf8");
const named = [...readme.matchAll(/npm (?:run ([\w-]+)|(test))/g)].map(([, script, test]) => script ?? test ?? "");

test.each([...new Set(named)])(
  "the command `npm run %s` of the README works in a fresh clone, because its script installs the packages first",
  (script) => {
    expect(scripts[script]).toMatch(/^node scripts\/run\.mjs [a-z]+$/);
  },
);

test("the README names the commands demo, starling and test", () => {
  expect(named).toEqual(expect.arrayContaining(["demo", "starling", "test"]));
});
