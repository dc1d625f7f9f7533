import { errorMessage } from "#shared/base/errors.ts";

/** Runs checks that depend on each other. A check runs once the checks that it needs are ok; all others run side by side. */

export type CheckOutcome =
  | { readonly state: "ok"; readonly found: string }
  /** The problem, what was found, and the command that repairs it. */
  | { readonly state: "wrong"; readonly found: string; readonly problem: string; readonly remedy: string }
  | { readonly state: "unchecked"; readonly because: string };

export interface Check {
  readonly name: string;
  /** The check runs only when all of these are ok. */
  readonly needs?: readonly string[];
  /** The check runs only when none of these is wrong; they may be unchecked. */
  readonly unlessWrong?: readonly string[];
  readonly run: () => Promise<CheckOutcome>;
}

export type CheckFinding = { readonly check: string } & CheckOutcome;

/** Findings in the order of the checks. A check names only checks before it. One that throws is unchecked, with its error. */
export function runChecks(checks: readonly Check[]): Promise<readonly CheckFinding[]> {
  const findings = new Map<string, Promise<CheckFinding>>();
  for (const check of checks) findings.set(check.name, finding(check, findings));
  return Promise.all(findings.values());
}

async function finding(check: Check, before: ReadonlyMap<string, Promise<CheckFinding>>): Promise<CheckFinding> {
  const { name, needs = [], unlessWrong = [] } = check;
  for (const needed of [...needs, ...unlessWrong]) {
    const found = await before.get(needed);
    if (found?.state === "wrong") return unchecked(name, `${needed} is wrong`);
    if (found?.state === "unchecked" && needs.includes(needed)) return unchecked(name, `${needed} is not checked`);
  }
  try {
    return { check: name, ...(await check.run()) };
  } catch (error) {
    // Ctrl-C and --timeout end the command.
    if (error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError")) throw error;
    return unchecked(name, errorMessage(error));
  }
}

function unchecked(check: string, because: string): CheckFinding {
  return { check, state: "unchecked", because };
}

/** Runs `work` once for several checks. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= work();
    return made;
  };
}
