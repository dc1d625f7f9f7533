import type { VerbContext, VerbResult } from "#functions/apply/steps/verb.ts";
import { inspectSync } from "#functions/apply/verbs/inspect-sync.ts";
import { lookAtHealth } from "#functions/apply/verbs/look-at-health.ts";

/**
 * Looks whether what was applied has become ready. Before that is said, it is compared with what was applied: a stranger
 * may have made ready something else.
 */
export async function verifySync(context: VerbContext): Promise<VerbResult> {
  const finding = await lookAtHealth(context);
  const isCompared = finding.phase === "Ready" && context.row.desired.apply.drift !== "off";
  return isCompared ? inspectSync(context) : finding;
}
