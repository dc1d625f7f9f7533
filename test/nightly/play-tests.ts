import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

interface Chosen {
  readonly seed: string;
  /** The number of scenarios. The default is the usual number of the suite. */
  readonly count: string | undefined;
}

interface TestSuite {
  readonly args: readonly string[];
  env(chosen: Chosen): Readonly<Record<string, string>>;
}

/** Suites of tests that `npm test` plays only a few times, with fixed seeds, and on embedded API servers. */
export const testSuites = {
  properties: {
    args: ["--project", "unit", "planner.property", "git-hosts.property", "json-extent", "apply-order"],
    env: ({ seed, count = "2000" }) => ({ STARLING_PROPERTY_SEED: seed, STARLING_PROPERTY_RUNS: count }),
  },
  fuzz: {
    args: ["--project", "unit", "--project", "integration", "parsers.fuzz", "git-hosts.property"],
    env: ({ seed, count = "5000" }) => ({ STARLING_PROPERTY_SEED: seed, STARLING_PROPERTY_RUNS: count }),
  },
  stories: {
    args: ["--project", "e2e"],
    env: ({ seed }) => ({ STARLING_E2E_SEED: seed, STARLING_STORIES: "everywhere" }),
  },
} as const satisfies Readonly<Record<string, TestSuite>>;

export type TestSuiteName = keyof typeof testSuites;

const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));

/** Plays the tests of a suite with the given seed. If they fail, prints the command that repeats them. */
export async function playTests(name: TestSuiteName, chosen: Chosen): Promise<number> {
  const { args, env } = testSuites[name];
  const variables = env(chosen);
  const words = Object.entries(variables).map(([variable, value]) => `${variable}=${value}`);
  console.log(`${name}: ${words.join(" ")}`);
  const child = spawn(process.execPath, [vitest, "run", ...args], {
    stdio: "inherit",
    env: { ...process.env, ...variables },
  });
  const [code] = await once(child, "exit");
  if (code !== 0) console.log(`${name} failed\nrepeat it: npm run nightly -- ${name} --seed ${chosen.seed}`);
  return Number(code ?? 1);
}
