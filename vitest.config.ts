import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import LongestFirst from "./test/support/longest-first.ts";

const reporters = ["default", "./test/support/cluster-checks-reporter.ts"];
/** Half of a test's time is waiting: for a watchdog, a client that tries again, a server that starts. */
const maxWorkers = availableParallelism() + 2;
/**
 * The files of a worker share modules, for half of the processor's time went into loading them again. Nothing is mocked,
 * and what modules keep are caches; a file that leaves something behind is its own defect.
 */
const isolate = false;
const secondsMs = 1000;

function level(name: string, include: string, timeouts: { readonly test: number; readonly hook: number }) {
  return {
    name,
    include: [include],
    testTimeout: timeouts.test * secondsMs,
    hookTimeout: timeouts.hook * secondsMs,
  };
}

/** One project per level of docs/testing.md; `npm test` runs them all, one group after the other. */
export default defineConfig({
  test: {
    reporters,
    globalSetup: "./test/support/server-pool/serve-pool.ts",
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...level("unit", "{test,local/apiserver/test}/unit/**/*.test.ts", { test: 60, hook: 60 }),
          ...{ maxWorkers, isolate },
        },
      },
      { test: { ...level("contract", "test/contract/**/*.test.ts", { test: 30, hook: 60 }), maxWorkers, isolate } },
      { test: { ...level("synth", "test/synth/**/*.test.ts", { test: 120, hook: 120 }), maxWorkers, isolate } },
      {
        test: {
          ...level("integration", "{test,local/apiserver/test}/integration/**/*.test.ts", { test: 60, hook: 60 }),
          ...{ maxWorkers, isolate },
        },
      },
      {
        test: {
          ...level("e2e", "test/e2e/**/*.test.ts", { test: 300, hook: 120 }),
          maxWorkers,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // They play many worlds at once by themselves: beside others they would only starve.
        test: {
          ...level("weather", "test/weather/**/*.test.ts", { test: 3000, hook: 600 }),
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
