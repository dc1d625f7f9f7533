/** One run of the mutation tool: the files that are changed, and the tests that should see it. */
export interface MutationPart {
  readonly mutate: readonly string[];
  readonly tests: readonly string[];
  /** Every n-th mutant only, where all of them would take hours. */
  readonly every?: number;
}

export interface MutationArea {
  /** Percent of the mutants that have to die, those not counted whose survival is explained. */
  readonly least: number;
  readonly parts: readonly MutationPart[];
}

const domain = (...names: readonly string[]) => names.map((name) => `shared/domain/${name}.ts`);
const domainTests = (...names: readonly string[]) => names.map((name) => `test/unit/shared/domain/${name}.test.ts`);

/**
 * Where a mutant would be dangerous, and the tests below e2e that are there to kill it. Composition roots (`wire.ts`,
 * `handler.ts`, `env.ts`) are shown by e2e. The planner is not among them yet.
 */
export const mutationAreas: Readonly<Record<string, MutationArea>> = {
  timer: {
    least: 90,
    parts: [
      { mutate: ["functions/tick/claim-due.ts"], tests: ["test/unit/functions/tick/*.test.ts"] },
      {
        mutate: domain("rows/due", "rows/sync-row", "rows/object-rows"),
        tests: domainTests("rows/due", "rows/sync-row", "rows/object-rows"),
      },
    ],
  },
  rows: {
    least: 90,
    parts: [
      {
        mutate: domain("rows/row", "rows/keys", "rows/row-size", "rows/event-row", "rows/revision-row"),
        tests: domainTests("rows/*"),
      },
    ],
  },
};
