import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { stageRunsOf } from "#functions/rollout/read/inputs-before.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { nextRollout } from "#functions/rollout/write/next-rollout.ts";
import { startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { renumber, seeRollout, Transaction } from "#functions/rollout/write/transaction.ts";
import { stageRunFields } from "#shared/fleet/log-fields.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { isOvertaken, withStageBack } from "#shared/fleet/rollout/order.ts";
import { withRejected } from "#shared/fleet/rollout/rejection.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { failedRun, failureText, starling } from "#shared/fleet/rollout/take-back.ts";
import type { SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Takes a failed rollout back from its stage in one transaction, as a rollback of that stage alone: the stages before
 * have passed the rollout, and those after it never got it. It is rejected, and nothing is held. @returns undefined when
 * no stage run is to be taken back.
 */
export async function takeBackFailed(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { owner, row, rolloutState } = known;
  const failed = failedRun(row, rolloutState, known.stageRuns);
  if (failed === undefined) return undefined;
  const { stageRun, to } = failed;
  const index = rolloutState.stages.findIndex(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const name = rolloutState.stages[index]?.name ?? stageRun.stage;
  const transaction = new Transaction(known, ports.clock.now());
  const older = await seeRollout(transaction, to, ports.table);
  const bad = transaction.rollout(stageRun.rollout);
  const reason = failureText(stageRun);
  const rejection = { rollout: bad.number, by: starling, at: transaction.at, reason };
  const isOther = bad.plan.planHash !== older.plan.planHash;
  transaction.edit({ rejected: withRejected(rolloutState, rejection, isOther ? bad : undefined) });
  const rollout = nextRollout(transaction, {
    identity: `rollback#run${stageRun.snapshot}`,
    plan: older.plan,
    revision: older.revision,
    fromRevision: bad.revision,
    trigger: "rollback",
    rollback: to,
    takesBack: { rollout: bad.number, stage: name },
    asked: { by: starling, reason },
  });
  transaction.putRollout(rollout);
  transaction.edit({ stages: withStageBack(transaction.rolloutState, name, rollout.number) });
  await startStageRun(transaction, { stage: index, rollout }, ports);
  // Rollouts that follow have to be newer than the rollback.
  if (isOvertaken(transaction.rolloutState)) renumber(transaction);
  const strays = await straysOf(known, stageRun, { after: index, ports });
  if (strays.length > 0) transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(strays), at: 0 });
  ports.log.info("Starling takes a rollout back", {
    ...stageRunFields({ owner, rollout: bad.number }),
    stage: name,
    to,
    reason,
  });
  return transaction;
}

/** Clusters that moved to a later stage with what their stage was given. */
async function straysOf(
  known: Known,
  { rollout, stage }: StageRunRow,
  { after, ports }: { readonly after: number; readonly ports: PlannerPorts },
): Promise<readonly string[]> {
  const later = new Set(known.rolloutState.stages.slice(after + 1).map(({ name }) => name));
  if (later.size === 0) return [];
  const runs = await stageRunsOf(known.owner, rollout, ports.table);
  const pages = runs.flatMap((run) => (run.stage === stage ? run.pages : []));
  const lists = await Promise.all(pages.map(({ key }) => ports.lists.read<SnapshotTarget>(key)));
  const given = new Set(lists.flat().map(({ cluster }) => cluster));
  const members = await readMembers(known, ports);
  return members.flatMap((member) => (given.has(member.cluster) && later.has(member.stage) ? [member.cluster] : []));
}
