import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { startStageRun } from "#functions/rollout/start-stage-run.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { isCaughtUp, stageRunOf } from "#shared/fleet/rollout/feed.ts";
import { isLeft, isStalled, mustVerify, refOf, verdictOf, withVerdict } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Computes the phase of each stage run. One that has passed makes its rollout the stage's current one. @returns
 * undefined when no phase changes.
 */
export async function endStageRuns(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  const { rollout: settings } = relationOf(known.row);
  for (const [index, stage] of known.rolloutState.stages.entries()) {
    const stageRun = stageRunOf(stage, known.stageRuns);
    if (stageRun === undefined) continue;
    const rollout = transaction.rollout(stageRun.rollout);
    const isAhead = stage.ahead === true && !isCaughtUp(transaction.rolloutState, index);
    if (stage.ahead === true && !isAhead) transaction.editStage(stage.name, ({ ahead: _waited, ...kept }) => kept);
    // Its stage was renamed. A stage run that stands still does not begin anything because of that.
    if (stageRun.stage !== stage.name && !isStalled(stageRun)) {
      await startStageRun(transaction, { stage: index, rollout }, ports);
      continue;
    }
    const deletion = rollout.plan.deletion !== undefined;
    const judged = { deletion, mustVerify: mustVerify(settings, stage.name) };
    const verdict = verdictOf(stageRun, settings, judged);
    // Clusters that joined in place of those that left may verify it.
    const areOthers = stage.members > 0 && stageRun.membersVersion < known.rolloutState.membersVersion;
    if (verdict.phase === "NothingVerified" && isLeft(stageRun, judged) && areOthers) {
      await startStageRun(transaction, { stage: index, rollout }, ports);
      continue;
    }
    const next = withVerdict(stageRun, verdict, transaction.at);
    if (next === stageRun || (next.phase === "Passed" && isAhead)) continue;
    transaction.putStageRun(next);
    if (next.phase === "Passed") await pass(transaction, { stageRun: next, name: stage.name }, ports);
    transaction.report(stageRun);
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** Makes its rollout the stage's current one, which clusters that joined after the snapshot get as well. */
async function pass(
  transaction: Transaction,
  { stageRun, name }: { readonly stageRun: StageRunRow; readonly name: string },
  ports: PlannerPorts,
): Promise<void> {
  transaction.editStage(name, ({ updatingTo: _moving, bar, ...stage }) => ({
    ...stage,
    ...(bar === undefined || stageRun.rollout > bar.upTo ? {} : { bar }),
    current: stageRun.rollout,
    passed: refOf(stageRun),
  }));
  const { former = 0, stages } = transaction.rolloutState;
  if (stages.every(({ current = 0 }) => current >= former)) transaction.edit({ former: undefined });
  const { rolloutState, known } = transaction;
  const { failed, away = 0 } = rolloutState.catchUps;
  if (failed + away > 0) transaction.addJobs({ do: "clear", stage: name });
  if (stageRun.membersVersion < rolloutState.membersVersion) {
    const members = await readMembers(known, ports);
    const late = members.filter(({ stage, since }) => stage === name && since > stageRun.membersVersion);
    const clusters = late.map(({ cluster }) => cluster);
    if (late.length > 0) transaction.addJobs({ do: "catchUp", clusters: await ports.lists.store(clusters), at: 0 });
  }
}
