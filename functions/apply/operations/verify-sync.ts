import { healthCheck } from "#functions/apply/operations/health-check.ts";
import { inspectSync } from "#functions/apply/operations/inspect-sync.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";

/**
 * Checks whether the applied objects have become ready. Before it reports that, it compares them with the rendering:
 * somebody may have made another state ready.
 */
export async function verifySync(context: OperationContext): Promise<OperationResult> {
  const finding = await healthCheck(context);
  const isCompared = finding.phase === "Ready" && context.row.desired.apply.drift !== "off";
  return isCompared ? inspectSync(context) : finding;
}
