/** Gives clusters whose attempt has ended another turn. */

import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { type ClusterRows, isLeftBehind } from "#shared/fleet/rollout/facts.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { catchUpStates, clusterOfKey, keys } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, Job, StageRunRef, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Rows in one step: a catch-up needs two writes. */
export const failedInPage = 30;

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

/**
 * Why a failed or unreachable cluster is no longer a target of its stage, by the list of members; undefined when it
 * still is. A cluster that has left a stage no longer affects that stage's verdict, whether it failed before or after.
 * Its success remains evidence. A deletion concerns every cluster that has something, in whatever stage.
 */
export async function strayedFrom(
  transaction: Transaction,
  { stageRun: ref, cluster }: { readonly stageRun: StageRunRef; readonly cluster: string },
  ports: PlannerPorts,
): Promise<string | undefined> {
  const { known, rolloutState } = transaction;
  const stageRun = transaction.stageRun(ref);
  // No cluster has moved since the snapshot.
  if (stageRun === undefined || stageRun.membersVersion === rolloutState.membersVersion) return undefined;
  if (transaction.rollout(stageRun.rollout).plan.deletion !== undefined) return undefined;
  // The stage may have been renamed.
  const stage = rolloutState.stages.find(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const member = (await readMembers(known, ports)).find((one) => one.cluster === cluster);
  // A job forgets clusters that are in no stage.
  if (stage === undefined || member === undefined || member.stage === stage.name) return undefined;
  return `moved to stage ${member.stage}`;
}

/** A cluster's failed or unreachable targets from before it left their stages. */
export async function releaseTemplates(
  transaction: Transaction,
  targets: readonly TargetRow[],
  ports: PlannerPorts,
): Promise<void> {
  for (const target of targets.filter(isLeftBehind)) {
    const reason = await strayedFrom(transaction, target, ports);
    if (reason !== undefined) transaction.amend(target, { state: "Skipped", reason });
  }
}
