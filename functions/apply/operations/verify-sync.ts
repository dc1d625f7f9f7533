import { healthCheck } from "#functions/apply/operations/health-check.ts";
import { inspectSync } from "#functions/apply/operations/inspect-sync.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";

/**
 * Looks whether what was applied has become ready. Before that is said, it is compared with what was applied: a stranger
 * may have made ready something else.
 */
export async function verifySync(context: OperationContext): Promise<OperationResult> {
  const finding = await healthCheck(context);
  const isCompared = finding.phase === "Ready" && context.row.desired.apply.drift !== "off";
  return isCompared ? inspectSync(context) : finding;
}
