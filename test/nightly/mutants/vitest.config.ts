import { defineConfig } from "vitest/config";
import { testsSetting } from "#test/nightly/mutants/left-out-checker.ts";

/**
 * The tests of one part, all in one project. Not by Stryker's own option for test files: with that it switches mutants
 * of top-level code on too late, and all of them live.
 */
export default defineConfig({
  test: {
    include: (process.env[testsSetting] ?? "").split("\n"),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
