import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { ClusterRows } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { catchUpStates, clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, Job, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Rows in one step: of an arrival two are written. */
export const failedInPage = 30;

/** Targets of a leg that failed, or arrivals, get another turn, and count anew. */
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

/** Who failed has another turn: in its leg; outside of it where that has passed, or where it came later. */
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
    // Also what one that had joined is rendered from is asked for again: somebody wants it.
    const { rollout } = row.type === "CatchUp" ? row : {};
    transaction.putCatchUp(row.cluster, "waiting", { why: "returned", ...defined({ rollout }) });
  }
}

/** It is to come to a stage: what became of it there before is over, and what it lost is missed still. */
export function startOver(transaction: Transaction, { catchUps, left }: Pick<ClusterRows, "catchUps" | "left">): void {
  for (const catchUp of catchUps) {
    if (keys.catchUp.read(catchUp).state === "waiting") continue;
    transaction.dropCatchUp(catchUp);
    const { cluster, rollout } = catchUp;
    if (rollout !== undefined) transaction.putCatchUp(cluster, "waiting", { why: "returned", rollout });
  }
  transaction.catchUp(left);
}

/** Those that nothing came of as arrivals to a stage are targets of what it has passed since, or arrive at that. */
export async function clearPage(
  transaction: Transaction,
  job: Extract<Job, { do: "clear" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const range = ranges.catchUpsTried(transaction.known.owner);
  const { rows, rest } = await readPage(transaction, { range, job }, table);
  const others = new Set(transaction.rolloutState.stages.flatMap(({ name }) => (name === job.stage ? [] : [name])));
  // Also one that failed in a stage that is no more.
  const over = rows.filter(({ stage = "" }) => !others.has(stage));
  for (const catchUp of over) if (catchUp.rollout === undefined) transaction.dropCatchUp(catchUp);
  // What was to be put back is missed still.
  const missing = over.filter(({ rollout }) => rollout !== undefined);
  await tryAgain(transaction, missing, table);
  return rest;
}

/** @returns the rows that can be read, and what is left of the job. */
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
