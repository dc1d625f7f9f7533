import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { countsTable, recordedCounts } from "#test/nightly/mutants/mutant-counts.ts";
import { textKey } from "#test/nightly/mutants/mutant-text.ts";
import { explanations, mutantsOnPage, writeMutantsPage } from "#test/nightly/mutants/mutants-page.ts";

if (process.env.STARLING_UPDATE_DOCS === "1") writeMutantsPage();

test("docs/testing.md has the counts of the last runs", () => {
  expect(mutantsOnPage().counts).toBe(countsTable(recordedCounts()));
});

test("docs/testing.md lists each mutant that may live, with its reason", () => {
  expect(mutantsOnPage().explanations).toBe(explanations());
});

test("what is explained is there: a line that has changed needs another explanation, or none", () => {
  const gone = explainedMutants.filter(({ file, code }) => {
    const lines = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8").split("\n");
    return !lines.some((line) => line.trim() === code);
  });
  expect(gone).toEqual([]);
});

test("no mutant is explained twice, and none without a reason", () => {
  expect(new Set(explainedMutants.map(textKey)).size).toBe(explainedMutants.length);
  expect(explainedMutants.filter(({ reason }) => reason.trim() === "")).toEqual([]);
});
