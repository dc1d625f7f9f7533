import type { VerbResult } from "#functions/apply/verbs/verb.ts";

/**
 * The cluster remembers something that forbids this attempt. Another cluster behind the endpoint counts as unreachable:
 * nothing is written to it, and the rollout goes on without it within its budget.
 */
export function refusedFinding(refusal: {
  readonly reason: "IdentityMismatch" | "ForeignOwner" | "ClusterAhead";
  readonly message: string;
}): VerbResult {
  const phase = refusal.reason === "IdentityMismatch" ? "Unreachable" : "Failed";
  return { phase, reason: refusal.reason, message: refusal.message };
}
