import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { reportedResume } from "#functions/rollout/write/assign.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";

/** Informs workers and catch-ups that stood still during a suspension. */
export async function wakeResumed(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const messages = await reportedResume(known, ports);
  if (messages === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  // Attempts that had begun get their whole time again.
  transaction.edit({ deadline: undefined });
  transaction.messages.push(...messages);
  return transaction;
}
