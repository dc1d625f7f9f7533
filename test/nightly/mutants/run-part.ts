import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Stryker } from "@stryker-mutator/core";
import type { MutationPart } from "#test/nightly/mutants/areas.ts";
import { everySetting, testsSetting } from "#test/nightly/mutants/left-out-checker.ts";
import type { RunMutant } from "#test/nightly/mutants/mutant-text.ts";
import { refusedByTypes } from "#test/nightly/mutants/refused-by-types.ts";

export interface PartResult {
  readonly killed: number;
  readonly timedOut: number;
  /** Mutants that no test noticed and that the compiler refuses. */
  readonly refused: number;
  readonly survived: readonly RunMutant[];
  readonly uncovered: readonly RunMutant[];
  /** The number of mutants that were left out as texts for people. */
  readonly texts: number;
  readonly notSampled: number;
}

export interface RunOptions {
  readonly root: string;
  readonly concurrency: number;
  /** The file of Stryker's results. It is also written when a signal interrupts the run. */
  readonly known: string;
  /** With `changed`, only mutants whose code or tests have changed run, and those without a result. */
  readonly again: "all" | "changed";
}

interface KnownReport {
  readonly files: Readonly<
    Record<string, { mutants: readonly { readonly static?: boolean; readonly status: string }[] }>
  >;
}

const checker = fileURLToPath(new URL("left-out-checker.ts", import.meta.url));
const reporter = fileURLToPath(new URL("living-reporter.ts", import.meta.url));

export async function runPart(part: MutationPart, options: RunOptions): Promise<PartResult> {
  // Checkers and tests run in Stryker's own processes, which get settings only by the environment.
  process.env[everySetting] = String(part.every ?? 1);
  process.env[testsSetting] = part.tests.join("\n");
  // Starting a real API server for each mutant would take most of the time.
  process.env.STARLING_EMBEDDED_ONLY = "1";
  if (options.again === "changed") forgetLivingStatics(options.known);
  const results = await new Stryker({
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner", checker, reporter],
    checkers: ["left-out"],
    vitest: { configFile: "test/nightly/mutants/vitest.config.ts", related: false },
    mutate: [...part.mutate],
    coverageAnalysis: "perTest",
    concurrency: options.concurrency,
    // A mutant must not count as dead because the machine is busy. Tests have their own time limits.
    timeoutMS: 90_000,
    timeoutFactor: 4,
    dryRunTimeoutMinutes: 30,
    // Stryker changes copies of the sources.
    inPlace: false,
    disableTypeChecks: false,
    // Stryker's own link is not made if node_modules is itself a link, as in a second work tree.
    symlinkNodeModules: false,
    buildCommand: "ln -s ../../../../node_modules node_modules",
    tempDirName: ".starling/mutants/sandboxes",
    ignorePatterns: ["/cdk.out", "/.starling", "/coverage", "/docs"],
    // Stryker would rewrite the file with an API that TypeScript 7 lacks, and Vitest does not read it.
    tsconfigFile: "none",
    reporters: ["progress-append-only", "living"],
    incremental: true,
    incrementalFile: options.known,
    force: options.again === "all",
  }).runMutationTest();
  const mutants = results.map((mutant) => ({ ...mutant, location: fromZero(mutant.location) }));
  const by = (status: string) => mutants.filter((mutant) => mutant.status === status);
  const left = (reason: string) => by("CompileError").filter((mutant) => mutant.statusReason === reason).length;
  const pending = by("Pending");
  if (pending.length > 0) throw new Error(`${pending.length} mutants were not run: ${pending[0]?.statusReason}`);
  const living = [...by("Survived"), ...by("NoCoverage")];
  const refused = await refusedByTypes(living, options.root);
  return {
    // A runtime error means that test files did not even load.
    killed: by("Killed").length + by("RuntimeError").length,
    timedOut: by("Timeout").length,
    refused: refused.size,
    survived: by("Survived").filter((mutant) => !refused.has(mutant)),
    uncovered: by("NoCoverage").filter((mutant) => !refused.has(mutant)),
    texts: left("text"),
    notSampled: left("sample"),
  };
}

/** Forgets living mutants of top-level code: Stryker does not know which tests cover them, and would never try new tests. */
function forgetLivingStatics(known: string): void {
  if (!existsSync(known)) return;
  const report = JSON.parse(readFileSync(known, "utf8")) as KnownReport;
  for (const file of Object.values(report.files)) {
    file.mutants = file.mutants.filter((mutant) => mutant.static !== true || mutant.status !== "Survived");
  }
  writeFileSync(known, JSON.stringify(report));
}

/** Stryker gives its checkers positions from 0, but its results have positions from 1. */
function fromZero({ start, end }: RunMutant["location"]): RunMutant["location"] {
  return {
    start: { line: start.line - 1, column: start.column - 1 },
    end: { line: end.line - 1, column: end.column - 1 },
  };
}
