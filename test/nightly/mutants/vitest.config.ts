import { matchesGlob, relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { testsSetting } from "#test/nightly/mutants/left-out-checker.ts";

const include = (process.env[testsSetting] ?? "").split("\n");

/** Keeps the order of the part, which has the cheap tests first, because the run ends at the first test that fails. */
class InGivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) =>
      include.findIndex((glob) => matchesGlob(relative(process.cwd(), moduleId), glob));
    return files.toSorted((a, b) => place(a) - place(b));
  }
}

/**
 * Runs the tests of one part, all in one project. Stryker's own option for test files is not used, because with it
 * Stryker switches mutants of top-level code on too late, and all of them live.
 */
export default defineConfig({
  test: { include, testTimeout: 60_000, hookTimeout: 60_000, sequence: { sequencer: InGivenOrder } },
});
