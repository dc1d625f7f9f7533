import fc from "fast-check";
import { test } from "vitest";
import { scenario } from "#test/support/planner-model/planner-steps.ts";
import { playScenario } from "#test/support/planner-model/play-scenario.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const numRuns = propertyRuns(20);
/** fast-check reports a failure within this time, with the smallest scenario found; the search for it plays many more. */
const limitMs = Math.max(60_000, numRuns * 500);

test.each(propertySeeds)(
  "the planner keeps its promises in any scenario (STARLING_PROPERTY_SEED=%i)",
  { timeout: 2 * limitMs },
  async (seed) => {
    await fc.assert(fc.asyncProperty(scenario, playScenario), { seed, numRuns, interruptAfterTimeLimit: limitMs });
  },
);

test.each([2, 5])(
  "the planner keeps its promises when many templates are renamed %i times before a worker begins",
  { timeout: limitMs },
  async (renames) => {
    await playScenario({
      rings: [0, 1],
      strategy: { maxConcurrent: 2, progressDeadline: "5m" },
      templates: 2,
      paths: "cluster",
      begins: "rolled out",
      steps: [{ do: "outgrow", cluster: 0, renames, deliveries: [] }],
      frozen: undefined,
    });
  },
);
