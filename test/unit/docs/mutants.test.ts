import { expect, test } from "vitest";
import { explainedMutants } from "#test/nightly/mutants/explained.ts";
import { textKey } from "#test/nightly/mutants/mutant-text.ts";
import { explanations, explanationsOnPage } from "#test/nightly/mutants/mutants-page.ts";

test("docs/testing.md lists each mutant that may live, with its reason", () => {
  expect(explanationsOnPage()).toBe(explanations());
});

test("no mutant is explained twice, and none without a reason", () => {
  expect(new Set(explainedMutants.map(textKey)).size).toBe(explainedMutants.length);
  expect(explainedMutants.filter(({ reason }) => reason.trim() === "")).toEqual([]);
});
