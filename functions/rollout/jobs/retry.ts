import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { readPage, tryAgain } from "#functions/rollout/write/another-turn.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/** Failed targets of a stage run, or failed catch-ups, get another turn, and are counted again. */
export async function retryPage(
  transaction: Transaction,
  job: Extract<Job, { do: "retry" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const { owner } = transaction.known;
  const stageRun = job.stageRun && transaction.stageRun(job.stageRun);
  if (stageRun === undefined && job.stageRun !== undefined) return undefined;
  const range = stageRun === undefined ? ranges.catchUps(owner, "failed") : ranges.targets(owner, stageRun);
  const { rows, rest } = await readPage<"Target" | "CatchUp">(transaction, { range, job }, table);
  const failed = rows.filter((row) => row.type === "CatchUp" || row.state === "Failed");
  await tryAgain(transaction, failed, table);
  if (stageRun !== undefined)
    transaction.putStageRun({ ...(transaction.stageRun(stageRun) ?? stageRun), retriedAt: transaction.at });
  return rest;
}

/** Unfinished catch-ups of a stage are targets of what it has passed since, or catch up with that. */
export async function clearPage(
  transaction: Transaction,
  job: Extract<Job, { do: "clear" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const range = ranges.catchUpsTried(transaction.known.owner);
  const { rows, rest } = await readPage(transaction, { range, job }, table);
  const others = new Set(transaction.rolloutState.stages.flatMap(({ name }) => (name === job.stage ? [] : [name])));
  // Includes one that failed in a stage that was removed.
  const over = rows.filter(({ stage = "" }) => !others.has(stage));
  for (const catchUp of over) if (catchUp.rollout === undefined) transaction.dropCatchUp(catchUp);
  // Syncs that had to be restored are still missing.
  const missing = over.filter(({ rollout }) => rollout !== undefined);
  await tryAgain(transaction, missing, table);
  return rest;
}

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
