import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { ClusterRows } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { catchUpStates, clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, Job, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Rows in one step: a catch-up needs two writes. */
export const failedInPage = 30;

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

/**
 * A failed target gets another turn: in its stage run, or as a catch-up when that has passed or the cluster joined
 * later.
 */
export async function tryAgain(
  transaction: Transaction,
  failed: readonly (TargetRow | CatchUpRow)[],
  table: Table,
): Promise<void> {
  const { owner } = transaction.known;
  const desired = failed.flatMap(({ cluster }) => catchUpStates.map((state) => keys.catchUp(owner, state, cluster)));
  transaction.see(await table.getMany(desired, { newer: "kept" }));
  for (const row of failed) {
    if (row.type === "Target" && transaction.stageRun(row.stageRun)?.phase !== "Passed") {
      transaction.amend(row);
      continue;
    }
    if (row.type === "CatchUp") transaction.dropCatchUp(row);
    else transaction.catchUp([row]);
    // The inputs of a cluster that joined are requested again as well, because somebody needs them.
    const { rollout } = row.type === "CatchUp" ? row : {};
    transaction.putCatchUp(row.cluster, "waiting", { why: "returned", ...defined({ rollout }) });
  }
}

/** The cluster has to catch up: its earlier result there no longer counts, and what it lost is still missing. */
export function startOver(transaction: Transaction, { catchUps, left }: Pick<ClusterRows, "catchUps" | "left">): void {
  for (const catchUp of catchUps) {
    if (keys.catchUp.read(catchUp).state === "waiting") continue;
    transaction.dropCatchUp(catchUp);
    const { cluster, rollout } = catchUp;
    if (rollout !== undefined) transaction.putCatchUp(cluster, "waiting", { why: "returned", rollout });
  }
  transaction.catchUp(left);
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

/** @returns the rows that can be read, and the rest of the job. */
export async function readPage<Type extends "Target" | "CatchUp">(
  transaction: Transaction,
  { range, job }: { readonly range: RowRange<Type>; readonly job: Extract<Job, { after?: string }> },
  table: Table,
) {
  const start = { limit: failedInPage, ...defined({ after: job.after }) };
  const { items, next } = await table.query<Type, "kept">({ ...range, ...start, newer: "kept" });
  for (const row of items) if (isNewer(row)) transaction.cannotRead(clusterOfKey(row));
  const rest = next === undefined ? undefined : { ...job, after: next };
  return { rows: items.filter((row) => !isNewer(row)), rest };
}
