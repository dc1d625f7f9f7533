import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Refused {
  readonly old: readonly string[] | RegExp;
  readonly in?: string;
}
const table: { readonly oldWords: readonly Refused[]; readonly oldPhrases: readonly Refused[] } = await import(
  new URL("../../../scripts/language/table.mjs", import.meta.url).href
);

const page = readFileSync("docs/words.md", "utf8");
const refused = page.slice(page.indexOf("## What `npm run lint` refuses"));
const rows = refused.split("\n").filter((line) => line.startsWith("| "));
const oldCells = rows.map((line) => line.split("|")[1]?.trim() ?? "");

test("the glossary lists each word that the linter refuses", () => {
  const missing = table.oldWords.filter(
    ({ old }) => Array.isArray(old) && !oldCells.some((cell) => old.some((word: string) => wordIn(word, cell))),
  );
  expect(missing).toEqual([]);
});

test("the glossary has an example of each phrase that the linter refuses", () => {
  const missing = table.oldPhrases.filter(
    ({ old }) => old instanceof RegExp && !oldCells.some((cell) => old.test(cell)),
  );
  expect(missing).toEqual([]);
});

test("the glossary is in alphabetical order and explains no word twice", () => {
  const glossary = page.slice(page.indexOf("| word |"), page.indexOf("\nThree words"));
  const words = glossary
    .split("\n")
    .slice(2)
    .filter((line) => line.startsWith("| "))
    .map((line) => (line.split("|")[1] ?? "").trim().toLowerCase());
  expect(words.length).toBeGreaterThan(50);
  expect(words).toEqual([...new Set(words)].sort((a, b) => a.localeCompare(b, "en")));
});

function wordIn(word: string, cell: string): boolean {
  return new RegExp(`\\b${word}\\b`).test(cell);
}
