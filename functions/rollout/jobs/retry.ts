import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { readPage, tryAgain } from "#functions/rollout/write/another-turn.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { isInGates } from "#shared/fleet/rollout/bake.ts";
import { skipOf, skippedText } from "#shared/fleet/rollout/gate-acts.ts";
import { hasEnded } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { NamedClusters } from "#shared/fleet/rows/named-clusters.ts";
import type { CatchUpRow, Job, StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";

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
  const { cluster } = job.only ?? {};
  const { rows, rest } =
    cluster === undefined
      ? await readPage<"Target" | "CatchUp">(transaction, { range, job }, table)
      : { rows: await rowsOf(transaction, { cluster, stageRun }, table), rest: undefined };
  const failed = rows.filter(
    (row) => row.type === "CatchUp" || row.state === "Failed" || (job.takenOut === true && row.takenOut === true),
  );
  await tryAgain(transaction, await amongNamed(failed, job.only, table), table);
  if (stageRun !== undefined)
    transaction.putStageRun({ ...(transaction.stageRun(stageRun) ?? stageRun), retriedAt: transaction.at });
  return rest;
}

/**
 * Failed and unreachable targets that somebody skipped are taken out of a stage run. Its gates are about the others that
 * had a result when they began, so that nothing changes in them afterwards.
 */
export async function skipPage(
  transaction: Transaction,
  job: Extract<Job, { do: "skip" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const { owner, row } = transaction.known;
  const stageRun = transaction.stageRun(job.stageRun);
  if (stageRun === undefined || hasEnded(stageRun) || isInGates(stageRun)) return undefined;
  const { cluster } = job.only;
  const { rows, rest } =
    cluster === undefined
      ? await readPage<"Target">(transaction, { range: ranges.targets(owner, stageRun), job }, table)
      : { rows: await rowsOf(transaction, { cluster, stageRun }, table), rest: undefined };
  const targets = rows.flatMap((one) =>
    one.type === "Target" && (one.state === "Failed" || one.state === "Unreachable") ? [one] : [],
  );
  const fleet = await table.getMany(
    targets.map((target) => keys.fleet(target.cluster)),
    { newer: "kept" },
  );
  const entries = new Map(fleet.flatMap((one) => (one.type === "Fleet" ? [[one.name, one]] : [])));
  for (const target of targets) {
    const entry = entries.get(target.cluster);
    const skip = entry && skipOf(row.operations, stageRun, { cluster: entry, rolloutState: transaction.rolloutState });
    const { state, reason } = target;
    if (skip !== undefined)
      transaction.amend(target, {
        state: "Skipped",
        reason: `${skippedText(skip)}; it was ${state}: ${reason}`,
        takenOut: true,
      });
  }
  return rest;
}

/** The target of one cluster in a stage run, or its failed catch-up. */
async function rowsOf(
  { known: { owner } }: Transaction,
  { cluster, stageRun }: { readonly cluster: string; readonly stageRun: StageRunRow | undefined },
  table: Table,
): Promise<readonly (TargetRow | CatchUpRow)[]> {
  const row = await table.get<"Target" | "CatchUp">(
    stageRun === undefined ? keys.catchUp(owner, "failed", cluster) : keys.target(owner, stageRun, cluster),
  );
  return row === undefined ? [] : [row];
}

/** The rows of the clusters that an act names. A cluster that is not registered any more has no labels. */
async function amongNamed<Of extends { readonly cluster: string }>(
  rows: readonly Of[],
  { clusters }: NamedClusters = {},
  table: Table,
): Promise<readonly Of[]> {
  if (clusters === undefined || rows.length === 0) return rows;
  const fleet = await table.getMany(
    rows.map(({ cluster }) => keys.fleet(cluster)),
    { newer: "kept" },
  );
  const labels = new Map(fleet.flatMap((row) => (row.type === "Fleet" ? [[row.name, row.labels]] : [])));
  return rows.filter(({ cluster }) => matchesSelector(clusters.selector, labels.get(cluster) ?? {}));
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
