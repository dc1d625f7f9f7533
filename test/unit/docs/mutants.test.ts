import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { countsTable, recordedCounts } from "#test/nightly/mutants/mutant-counts.ts";
import { textKey } from "#test/nightly/mutants/mutant-text.ts";
import { explanations, mutantsOnPage, writeMutantsPage } from "#test/nightly/mutants/mutants-page.ts";

if (process.env.STARLING_UPDATE_DOCS === "1") writeMutantsPage();

test("docs/testing.md has the counts of the last runs with mutants", () => {
  expect(mutantsOnPage().counts).toBe(countsTable(recordedCounts()));
});

test("docs/testing.md lists each mutant that tests need not kill, with the reason", () => {
  expect(mutantsOnPage().explanations).toBe(explanations());
});

test("each explained line of code still exists: a changed line needs another explanation, or none", () => {
  const gone = explainedMutants.filter(({ file, code }) => {
    const lines = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8").split("\n");
    return !lines.some((line) => line.trim() === code);
  });
  expect(gone).toEqual([]);
});

test("each explained mutant is explained once, with a reason", () => {
  expect(new Set(explainedMutants.map(textKey)).size).toBe(explainedMutants.length);
  expect(explainedMutants.filter(({ reason }) => reason.trim() === "")).toEqual([]);
});
