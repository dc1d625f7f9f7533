import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take the most time, the longest first. Vitest knows from its cache how long a file took; in a fresh clone it
 * goes by their sizes, and one that takes a minute begins last, when all others are done.
 */
const longestFiles: readonly string[] = [
  "chaos",
  "rollout",
  "restored-table",
  "local-clusters",
  "demo",
  "drift-and-prune",
  "identity",
  "busy-day",
  "lights",
  "replay",
  "benches",
  "local-killed",
  "local-down",
  "kubectl-sessions",
  "table",
  "local-restart",
  "local-up",
  "old-workers",
  "rollout",
  "owners",
  "lost-content",
  "apply-parts",
  "hostile-requests",
  "rare-requests",
  "starling",
  "fetch-starts",
  "hostile-repositories",
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
