import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/rows-about.ts";
import { readPage } from "#functions/rollout/write/another-turn.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/** Gives slots of a renamed stage, and its unfinished catch-ups, the new name, so that they are counted there. */
export async function renamePage(
  transaction: Transaction,
  job: Extract<Job, { do: "rename" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const { owner } = transaction.known;
  const slots = (await rowsAbout(ranges.slots(owner), table)).rows.filter(({ stage }) => stage === job.stage);
  for (const slot of slots.slice(0, transaction.room())) transaction.putSlot({ ...slot, stage: job.to }, slot);
  // A slot that is released under the old name may still become a catch-up under it.
  if (slots.length > 0) return job;
  const { rows, rest } = await readPage(transaction, { range: ranges.catchUpsTried(owner), job }, table);
  for (const catchUp of rows) if (catchUp.stage === job.stage) transaction.changeCatchUp(catchUp, { stage: job.to });
  return rest;
}
