import type { VerbResult } from "#functions/apply/steps/verb.ts";
import type { Withheld } from "#shared/fleet/sync/withheld.ts";

/** @param standing - what was done, and what not. */
export function withheldFinding(standing: string, why: Withheld): VerbResult {
  return { phase: "Applying", reason: why.reason, message: `${standing}: ${why.message}`, withheld: why };
}
