import { errorMessage } from "#shared/base/errors.ts";

/** Links of a chain: each is looked at when those before it hold, all that do not need each other at once. */

export type CheckOutcome =
  | { readonly state: "ok"; readonly found: string }
  /** What is wrong, what was seen, and the command that mends it. */
  | { readonly state: "wrong"; readonly found: string; readonly problem: string; readonly remedy: string }
  | { readonly state: "unchecked"; readonly because: string };

export interface Check {
  readonly name: string;
  /** Looked at only when all of these are ok. */
  readonly needs?: readonly string[];
  /** Looked at only when none of these is wrong; they may be unchecked. */
  readonly unlessWrong?: readonly string[];
  readonly look: () => Promise<CheckOutcome>;
}

export type CheckFinding = { readonly check: string } & CheckOutcome;

/** In the order of the checks, which name only those before them. A look that throws says why it found nothing out. */
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
    return { check: name, ...(await check.look()) };
  } catch (error) {
    // Ctrl-C and --timeout end the command.
    if (error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError")) throw error;
    return unchecked(name, errorMessage(error));
  }
}

function unchecked(check: string, because: string): CheckFinding {
  return { check, state: "unchecked", because };
}

/** What several links go by is found out once. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= work();
    return made;
  };
}
