import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import type { PlannerCall } from "#functions/rollout/read/begin-call.ts";
import type { GivenPorts } from "#functions/rollout/read/planner-ports.ts";
import { leadingCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { Failure } from "#shared/lambda/sqs-handler.ts";
import { ownerKey, type RolloutMessage } from "#shared/messages.ts";

/** Owners of a batch that are planned at once; each waits for the table most of the time. */
const ownersAtOnce = 5;

type Reported = RolloutMessage & { readonly correlationId?: string };

/**
 * Plans the owners of a batch, a few side by side. The messages of one owner make one call; on the FIFO queue they are
 * neighbours anyway.
 * @returns the messages that have to be tried again.
 */
export async function planBatch(
  messages: readonly Reported[],
  leftMs: number,
  ports: GivenPorts,
): Promise<readonly Failure[]> {
  const { clock } = ports;
  const end = clock.now().getTime() + leftMs;
  const byOwner = Map.groupBy([...messages.entries()], ([, message]) => ownerKey(message.owner));
  // The first owners leave an equal share of the time to those behind them.
  const eachMs = leftMs / Math.ceil(byOwner.size / ownersAtOnce);
  const failures: Failure[] = [];
  await runConcurrently([...byOwner.values()], ownersAtOnce, async (group) => {
    const [first] = group;
    if (first === undefined) return;
    const until = new Date(Math.min(end, clock.now().getTime() + eachMs));
    try {
      const reported = group.map(([, message]) => message);
      await underCorrelation(leadingCorrelation(reported.map(({ correlationId }) => correlationId)), () =>
        planOwner(first[1].owner, { until, ...reportOf(reported) }, ports),
      );
    } catch (error) {
      failures.push(...group.map(([index]) => ({ index, error })));
    }
  });
  return failures;
}

/** All clusters that the messages name; every cluster when a message names none. */
export function reportOf(messages: readonly RolloutMessage[]): Omit<PlannerCall, "until"> {
  if (messages.some(({ clusters, after }) => (clusters ?? after) === undefined)) return {};
  const rendered = messages.some(({ clusters }) => clusters?.length === 0);
  const [after] = messages.flatMap((message) => message.after ?? []).sort();
  return { clusters: new Set(messages.flatMap(({ clusters = [] }) => clusters)), rendered, ...defined({ after }) };
}
