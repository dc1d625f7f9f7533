import type { MutantText } from "#test/nightly/mutants/mutant-text.ts";

/** A mutant that no test below e2e kills, and why that is so. */
export interface ExplainedMutant extends MutantText {
  readonly reason: string;
}

/** Legend: file, the line as it is, what becomes of it, why no test sees it. */
const survivors: readonly (readonly [string, string, string, string])[] = [];

export const explainedMutants: readonly ExplainedMutant[] = survivors.map(([file, code, mutated, reason]) => ({
  file,
  code,
  mutated,
  reason,
}));
