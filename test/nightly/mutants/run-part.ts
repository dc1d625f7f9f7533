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
  /** Not seen by any test, and refused by the compiler. */
  readonly refused: number;
  readonly survived: readonly RunMutant[];
  readonly uncovered: readonly RunMutant[];
  /** Texts for people. */
  readonly texts: number;
  readonly notSampled: number;
}

export interface RunOptions {
  readonly root: string;
  readonly concurrency: number;
  /** Where what is known of mutants is kept, also when the run is interrupted by a signal. */
  readonly known: string;
  /** `changed`: only mutants whose code or tests have changed, and those that are not known. */
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
  // Checkers and tests run in processes of Stryker's, which get no other word of ours.
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
    // A machine that is busy with something else is no reason to count a mutant as dead: tests give up by themselves.
    timeoutMS: 90_000,
    timeoutFactor: 4,
    dryRunTimeoutMinutes: 30,
    // Sources and tests are copied, and the copies are changed.
    inPlace: false,
    disableTypeChecks: false,
    // Stryker's own way overlooks one that is a link itself, as in a second work tree.
    symlinkNodeModules: false,
    buildCommand: "ln -s ../../../../node_modules node_modules",
    tempDirName: ".starling/mutants/sandboxes",
    ignorePatterns: ["/cdk.out", "/.starling", "/coverage", "/docs"],
    // Stryker rewrites it by an API that TypeScript 7 does not have, and Vitest does not read it.
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
    // With the second, test files did not even load.
    killed: by("Killed").length + by("RuntimeError").length,
    timedOut: by("Timeout").length,
    refused: refused.size,
    survived: by("Survived").filter((mutant) => !refused.has(mutant)),
    uncovered: by("NoCoverage").filter((mutant) => !refused.has(mutant)),
    texts: left("text"),
    notSampled: left("sample"),
  };
}

/** Of a mutant of top-level code it is not known which tests cover it, and so Stryker never sees that there is a new one. */
function forgetLivingStatics(known: string): void {
  if (!existsSync(known)) return;
  const report = JSON.parse(readFileSync(known, "utf8")) as KnownReport;
  for (const file of Object.values(report.files)) {
    file.mutants = file.mutants.filter((mutant) => mutant.static !== true || mutant.status !== "Survived");
  }
  writeFileSync(known, JSON.stringify(report));
}

/** Stryker's checkers are told positions from 0, its results have them from 1. */
function fromZero({ start, end }: RunMutant["location"]): RunMutant["location"] {
  return {
    start: { line: start.line - 1, column: start.column - 1 },
    end: { line: end.line - 1, column: end.column - 1 },
  };
}
