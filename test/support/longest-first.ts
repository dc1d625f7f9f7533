import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The slowest test files, the slowest first. Vitest knows the time of a file from its cache. In a fresh clone it sorts
 * by size, and a slow file could then start last.
 */
const longestFiles: readonly string[] = [
  "chaos",
  "rollout",
  "restored-table",
  "local-clusters",
  "demo",
  "gates-example",
  "drift-and-prune",
  "identity",
  "busy-day",
  "command-output",
  "replay",
  "benches",
  "local-killed",
  "local-down",
  "kubectl-sessions",
  "table",
  "local-restart",
  "local-up",
  "late-workers",
  "rollout",
  "owners",
  "lost-blobs",
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

/** Sorts within each group of levels. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort(
      (a, b) => a.project.config.sequence.groupOrder - b.project.config.sequence.groupOrder || place(a) - place(b),
    );
  }
}
