import { wakeUp } from "#functions/rollout/assign.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Message } from "#shared/messages.ts";

/** Informs workers and catch-ups that stood still during a suspension. */
export async function wakeResumed(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
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
  { owner, row: { status, operations } }: Pick<Known, "owner" | "row">,
  { table, clock }: Pick<PlannerPorts, "table" | "clock">,
): Promise<readonly Message[] | undefined> {
  const { suspended, resumed } = operations;
  const isNews = (resumed?.number ?? 0) > (status.observedOperation ?? 0);
  if (suspended !== undefined || !isNews) return undefined;
  const { rows } = await rowsAbout(ranges.slots(owner), table);
  const standing = rows.filter(({ releasing }) => releasing === undefined);
  return standing.flatMap(({ cluster }) => wakeUp(cluster, undefined, clock.now()));
}
