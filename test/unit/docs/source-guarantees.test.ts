/** Each line of docs/source-guarantees.md is shown by a test whose title ends with the id of the line, and no test names another id. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("docs/source-guarantees.md", "utf8");
const form = String.raw`(?:source|receiver)(?:\.[a-z0-9-]+)+`;
const rows = [...page.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)].map(([, id = "", text = ""]) => ({ id, text }));
const ids = rows.map(({ id }) => id);

/** The ids at the end of a title, such as "… [source.reference.head]". */
const atTheEnd = new RegExp(String.raw`\s((?:\[${form}\] ?)+)["'\`]`, "g");

function idsIn(file: string): readonly string[] {
  const ends = [...readFileSync(file, "utf8").matchAll(atTheEnd)].map(([, end = ""]) => end);
  return ends.flatMap((end) => end.match(new RegExp(form, "g")) ?? []);
}

const files = execFileSync("git", ["ls-files", "--", "test/*.test.ts"], { encoding: "utf8" }).trim().split("\n");
const named = new Map(files.map((file) => [file, idsIn(file)]));

test("the page has many lines, each with an id of its own and a whole sentence", () => {
  expect(rows.length).toBeGreaterThan(50);
  expect(ids.filter((id) => !new RegExp(`^${form}$`).test(id))).toEqual([]);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  expect(rows.filter(({ text }) => !/^[A-Z].*\.$/.test(text)).map(({ id }) => id)).toEqual([]);
});

test("each line of the page is shown by a test that names it", () => {
  const shown = new Set([...named.values()].flat());
  expect(ids.filter((id) => !shown.has(id))).toEqual([]);
});

test("no test names a line that the page does not have", () => {
  const strangers = [...named].flatMap(([file, found]) =>
    found.filter((id) => !ids.includes(id)).map((id) => ({ file, id })),
  );
  expect(strangers).toEqual([]);
});
