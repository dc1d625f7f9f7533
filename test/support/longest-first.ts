import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take the most time, the longest first. Vitest knows from its cache how long a file took; in a fresh clone it
 * goes by their sizes, and one that takes a minute begins last, when all others are done.
 */
const longestFiles: readonly string[] = [
  "chaos",
  "replay",
  "busy-day",
  "drift-and-prune",
  "demo",
  "identity",
  "table",
  "kubectl-sessions",
  "rollout",
  "local-killed",
  "restored-table",
  "lights",
  "local-clusters",
  "local-down",
  "benches",
  "local-up",
  "hostile-requests",
  "hostile-repositories",
  "subjects",
  "local-restart",
  "old-workers",
];

function place({ moduleId }: TestSpecification): number {
  const index = longestFiles.indexOf(basename(moduleId, ".test.ts"));
  return index < 0 ? longestFiles.length : index;
}

/** Within each group of levels. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort(
      (a, b) => a.project.config.sequence.groupOrder - b.project.config.sequence.groupOrder || place(a) - place(b),
    );
  }
}
