/** Reports a check of a Sync to the log and the metrics; reports nothing when the result is the same as before. */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { beginningOf, currentCorrelation } from "#shared/adapters/correlation.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import type { Observed, Phase } from "#shared/fleet/rows/sync-row.ts";
import type { Metrics } from "#shared/ports.ts";

const bad: ReadonlySet<Phase> = new Set<Phase>(["Failed", "Retrying", "Unreachable"]);
/** An attempt in one of these phases has ended. */
const over: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Failed", "Gone"]);

export function reportOutcome({ row, observed }: SyncOutcome, { log, metrics }: WorkerPorts): void {
  if (observed === undefined) return;
  const before = row.observed?.attempt === observed.attempt ? row.observed : undefined;
  if (before?.phase !== observed.phase || before.reason !== observed.reason) {
    const { attempt, phase, reason, message: text, objects } = observed;
    const fields = { ...syncFields(row), attempt, phase, reason, text, ready: objects.ready, total: objects.total };
    if (bad.has(phase)) log.warn("sync reconciled", fields);
    else log.info("sync reconciled", fields);
  }
  measure(observed, before, metrics);
  const { drift } = observed;
  if (drift !== undefined && drift.objects > 0 && drift.at !== row.observed?.drift?.at) metrics.count("Drift", 1);
}

/** @param before - what was observed of the same attempt. */
function measure(observed: Observed, before: Observed | undefined, metrics: Metrics): void {
  const wasOver = before !== undefined && over.has(before.phase);
  if (over.has(observed.phase) && !wasOver) metrics.count("Applies", 1);
  if (observed.readyAt === undefined || observed.readyAt === before?.readyAt) return;
  const readyAt = Date.parse(observed.readyAt);
  metrics.seconds("ApplySeconds", secondsBetween(Date.parse(observed.startedAt), readyAt));
  const began = beginningOf(currentCorrelation() ?? "");
  if (began?.by === "push") metrics.seconds("PushToReady", secondsBetween(began.at.getTime(), readyAt));
}

/** Clocks differ, and one of them may only have seconds. */
function secondsBetween(fromMs: number, toMs: number): number {
  return Math.max(0, (toMs - fromMs) / 1000);
}
