import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/rows-about.ts";
import { wakeUp } from "#functions/rollout/write/assign.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { isResumeNew, type Known } from "#shared/fleet/rollout/facts.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Message } from "#shared/messages.ts";

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

/** @returns undefined when the owner's status has every resume already. */
export async function reportedResume(
  { owner, row }: Pick<Known, "owner" | "row">,
  { table, clock }: Pick<PlannerPorts, "table" | "clock">,
): Promise<readonly Message[] | undefined> {
  if (!isResumeNew({ row })) return undefined;
  const { rows } = await rowsAbout(ranges.slots(owner), table);
  const standing = rows.filter(({ releasing }) => releasing === undefined);
  return standing.flatMap(({ cluster }) => wakeUp(cluster, undefined, clock.now()));
}
