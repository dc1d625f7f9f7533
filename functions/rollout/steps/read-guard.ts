import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { guardNow } from "#shared/fleet/rollout/guarded-templates.ts";

/**
 * Records the guard of the spec, so that an edit which raises it is judged by the former one, and the templates that it
 * withholds. @returns undefined when the guard withholds what it did before.
 */
export function readGuard(known: Known, _work: CallWork, ports: PlannerPorts): Transaction | undefined {
  const guard = guardNow({ ...known, row: known.guarded, now: ports.clock.now() });
  if (guard === known.rolloutState.guard) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  transaction.edit({ guard });
  return transaction;
}
