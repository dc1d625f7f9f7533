import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { stageRunsOf } from "#functions/rollout/read/inputs-before.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import { nextRollout } from "#functions/rollout/write/next-rollout.ts";
import { startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import {
  coveredBy,
  endedBy,
  isOvertaken,
  newestTaken,
  takenAfter,
  withRolledBack,
} from "#shared/fleet/rollout/order.ts";
import { isRejected, withRejected } from "#shared/fleet/rollout/rejection.ts";
import { newRollback } from "#shared/fleet/rollout/rollback.ts";
import { stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Starts a rollback in one transaction: it is a new rollout with the plan and the inputs of an older one. It is at once
 * the current rollout of every stage that it takes back, and whatever a stage took since then is rejected. So a cluster
 * that answers again, or moves, gets it as well. @returns undefined when none is asked for.
 */
export async function rollBack(known: Known, _work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { owner, row, rolloutState } = known;
  const act = newRollback(row, rolloutState);
  if (act === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  transaction.edit({ handledRollback: act.number });
  const { to } = act;
  const older = await ports.table.get(keys.rollout(owner, to));
  const covered = coveredBy(rolloutState, to);
  // Another edit or rollback was faster: there is nothing to take back any more.
  if (older === undefined || covered.length === 0) return transaction;
  const before = known.rollouts.get(newestTaken(rolloutState));
  const rollout = nextRollout(transaction, {
    identity: `rollback#${act.number}`,
    plan: older.plan,
    revision: older.revision,
    ...defined({ fromRevision: before?.revision }),
    trigger: "rollback",
    rollback: to,
    ...defined({ deletes: act.deletes }),
    asked: { by: act.by, ...defined({ reason: act.reason }) },
  });
  const { number } = rollout;
  const taken = await stageRunsAfter(known, to, ports);
  for (const after of new Set(taken.map((stageRun) => stageRun.rollout))) {
    if (isRejected(transaction.rolloutState, after)) continue;
    const bad = await ports.table.get(keys.rollout(owner, after));
    const isOther = bad !== undefined && bad.plan.planHash !== older.plan.planHash;
    const rejection = { rollout: after, by: act.by, at: act.at, ...defined({ reason: act.reason }) };
    transaction.edit({ rejected: withRejected(transaction.rolloutState, rejection, isOther ? bad : undefined) });
  }
  transaction.putRollout(rollout);
  for (const stageRun of stageRunsIn({ stages: endedBy(rolloutState, to) }, known.stageRuns))
    transaction.supersede(stageRun, number);
  transaction.edit({ stages: withRolledBack(transaction.rolloutState, to, number) });
  for (const { name } of covered) {
    const stage = rolloutState.stages.findIndex((one) => one.name === name);
    await startStageRun(transaction, { stage, rollout }, ports);
  }
  // Rollouts that a hold kept back have to be newer than the rollback.
  if (isOvertaken(transaction.rolloutState)) renumber(transaction);
  const strays = await straysOf(known, { to, taken }, ports);
  if (strays.length > 0) transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(strays), at: 0 });
  return transaction;
}

/** The stage runs of the rollouts that are taken back; one that a hold kept back has none. */
async function stageRunsAfter(
  { owner, rolloutState }: Known,
  to: number,
  { table }: PlannerPorts,
): Promise<readonly StageRunRow[]> {
  const found = await Promise.all(takenAfter(rolloutState, to).map((number) => stageRunsOf(owner, number, table)));
  return found.flat();
}

/**
 * Clusters of other stages that were given something of what is taken back: those that moved there since, and those of
 * a stage that had begun with it.
 */
async function straysOf(
  known: Known,
  { to, taken }: { readonly to: number; readonly taken: readonly StageRunRow[] },
  ports: PlannerPorts,
): Promise<readonly string[]> {
  const { owner, rolloutState } = known;
  const covered = new Set(coveredBy(rolloutState, to).map(({ name }) => name));
  if (covered.size === rolloutState.stages.length) return [];
  const given = new Set<string>();
  for (const stageRun of taken.filter(({ stage }) => covered.has(stage)))
    for (const { key } of stageRun.pages)
      for (const { cluster } of await ports.lists.read<SnapshotTarget>(key)) given.add(cluster);
  // In other stages only those that had a turn.
  for (const stageRun of taken.filter(({ stage }) => !covered.has(stage))) {
    const { rows } = await rowsAbout(ranges.targets(owner, stageRun), ports.table);
    for (const { cluster, attempts } of rows) if (Object.keys(attempts).length > 0) given.add(cluster);
  }
  const numbers = new Set(taken.map(({ rollout }) => rollout));
  const slots = await rowsAbout(ranges.slots(owner), ports.table);
  for (const { cluster, rollout } of slots.rows) if (numbers.has(rollout)) given.add(cluster);
  const members = await readMembers(known, ports);
  return members.flatMap(({ cluster, stage }) => (given.has(cluster) && !covered.has(stage) ? [cluster] : []));
}
