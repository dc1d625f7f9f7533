/** The steps of the planner. A call takes the first one that has something to do, writes it, and begins at the top again. */

import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { renewOwnerBlobs, repairList } from "#functions/rollout/repair/lost-blobs.ts";
import { checkBaked } from "#functions/rollout/steps/check-baked.ts";
import { collectPast } from "#functions/rollout/steps/delete/collect-past.ts";
import { deleteOwner, forgetOwner } from "#functions/rollout/steps/delete/delete-owner.ts";
import { endStageRuns } from "#functions/rollout/steps/end-stage-runs.ts";
import { fillSlots } from "#functions/rollout/steps/fill/fill-slots.ts";
import { followReconcile, startReconcile, startTargetActs } from "#functions/rollout/steps/handle-reconcile.ts";
import { goIdle } from "#functions/rollout/steps/idle/go-idle.ts";
import { mayPlanAhead, planAhead } from "#functions/rollout/steps/plan-ahead.ts";
import { readAlarms } from "#functions/rollout/steps/read-alarms.ts";
import { readGuard } from "#functions/rollout/steps/read-guard.ts";
import { refreshMembers } from "#functions/rollout/steps/refresh-members.ts";
import { rejectRollouts } from "#functions/rollout/steps/reject-rollouts.ts";
import { restartReturned } from "#functions/rollout/steps/restart-returned.ts";
import { restoreTemplates } from "#functions/rollout/steps/restore-templates.ts";
import { retryRendered } from "#functions/rollout/steps/retry-rendered.ts";
import { rollBack } from "#functions/rollout/steps/roll-back.ts";
import { runJob } from "#functions/rollout/steps/run-job.ts";
import { settleSlots } from "#functions/rollout/steps/settle/settle-slots.ts";
import { startNextStageRun } from "#functions/rollout/steps/start-next-stage-run.ts";
import { takeBackFailed } from "#functions/rollout/steps/take-back-failed.ts";
import { wakeResumed } from "#functions/rollout/steps/wake-resumed.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { isToRenew } from "#shared/fleet/blob-life.ts";
import { isWatched } from "#shared/fleet/rollout/alarms.ts";
import { isResumeNew, type Known, lacksRenderings, mayHaveOtherMembers } from "#shared/fleet/rollout/facts.ts";
import { guardSpecOf, mayChangeMembers } from "#shared/fleet/rollout/guard.ts";
import { newRejections } from "#shared/fleet/rollout/rejection.ts";
import { newRollback } from "#shared/fleet/rollout/rollback.ts";
import { isStalled, lastStageRunOf, stageRunOf, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";

/** `done`: nothing more is to be decided for now, or the owner is gone. */
type Outcome = Transaction | "done" | undefined;

export interface PlannerStep {
  readonly name: string;
  /** Whether it may have something to do, as far as the rows that are read tell. */
  readonly applies: (known: Known, work: CallWork, now: Date) => boolean;
  /** The later steps that it has to stand before, with the reasons. Other neighbours may be exchanged. */
  readonly before?: Readonly<Partial<Record<string, string>>>;
  /** @returns undefined when the step has nothing to do. */
  readonly take: (known: Known, work: CallWork, ports: PlannerPorts) => Outcome | Promise<Outcome>;
}

/** `test/unit/functions/rollout/step-order.test.ts` exchanges each two steps whose order has a reason. */
export const plannerSteps: readonly PlannerStep[] = [
  {
    name: "rejectRollouts",
    applies: ({ row, rolloutState }) => newRejections(row, rolloutState).length > 0,
    before: { settleSlots: "a check of the slots pauses what is not begun of a rejected rollout" },
    take: rejectRollouts,
  },
  {
    name: "rollBack",
    applies: ({ row, rolloutState }) =>
      newRollback(row, rolloutState) !== undefined &&
      row.operations.suspended === undefined &&
      row.operations.deletion === undefined,
    take: rollBack,
  },
  {
    name: "wakeResumed",
    applies: isResumeNew,
    before: { settleSlots: "attempts that stood still get their whole time again before the slots are checked" },
    take: wakeResumed,
  },
  {
    name: "settleSlots",
    applies: (_known, { round }) => round.slots.length > 0,
    take: settleSlots,
  },
  {
    name: "restartReturned",
    applies: (_known, { answering }) => answering.length > 0,
    take: restartReturned,
  },
  {
    name: "restoreTemplates",
    applies: ({ rolloutState: { stages }, stageRuns }) =>
      stages.some(
        (stage) => stage.updatingTo !== undefined || lastStageRunOf(stage, stageRuns)?.putBack?.[0] !== undefined,
      ),
    take: restoreTemplates,
  },
  {
    name: "runJob",
    applies: ({ rolloutState }) => rolloutState.jobs.length > 0,
    before: { refreshMembers: "a list of members that is made while jobs run would add to them" },
    take: runJob,
  },
  {
    name: "readGuard",
    applies: ({ guarded, rolloutState: { guard } }) => guard !== undefined || guardSpecOf(guarded) !== undefined,
    take: readGuard,
  },
  {
    name: "refreshMembers",
    applies: (known, _work, now) =>
      mayHaveOtherMembers(known) || mayChangeMembers({ row: known.guarded, guard: known.rolloutState.guard, now }),
    take: refreshMembers,
  },
  {
    name: "readAlarms",
    applies: ({ rolloutState, stageRuns }) => stageRunsIn(rolloutState, stageRuns).some(isWatched),
    take: readAlarms,
  },
  {
    name: "endStageRuns",
    applies: ({ rolloutState }) => rolloutState.stages.some(({ updatingTo }) => updatingTo !== undefined),
    before: {
      startNextStageRun: "a stage run that has passed is written as passed before a newer rollout takes its stage",
    },
    take: endStageRuns,
  },
  {
    name: "checkBaked",
    applies: ({ rolloutState, stageRuns }) =>
      rolloutState.stages.some((stage) => stageRunOf(stage, stageRuns)?.phase === "Baking"),
    take: checkBaked,
  },
  {
    name: "retryRendered",
    applies: (known, { isRendered }) => isRendered && lacksRenderings(known),
    take: retryRendered,
  },
  {
    name: "takeBackFailed",
    applies: ({ row: { operations }, rolloutState, stageRuns }) =>
      operations.suspended === undefined && stageRunsIn(rolloutState, stageRuns).some(isStalled),
    before: {
      startNextStageRun: "the clusters of a failed rollout go back, and are not given to a newer one with its damage",
    },
    take: takeBackFailed,
  },
  {
    name: "startNextStageRun",
    applies: ({ row: { operations } }) => operations.suspended === undefined || operations.deletion !== undefined,
    before: { fillSlots: "slots are given for the newest rollout that a stage may take" },
    take: startNextStageRun,
  },
  {
    name: "planAhead",
    applies: mayPlanAhead,
    take: planAhead,
  },
  {
    name: "startReconcile",
    applies: ({ row: { operations }, rolloutState }) =>
      operations.suspended === undefined && operations.reconcile?.number !== rolloutState.handledReconcile,
    take: startReconcile,
  },
  {
    name: "startTargetActs",
    applies: ({ row: { operations }, rolloutState: { guard } }) =>
      operations.suspended === undefined &&
      (operations.gates !== undefined || operations.guard !== undefined || guard !== undefined),
    take: startTargetActs,
  },
  {
    name: "fillSlots",
    applies: () => true,
    before: { followReconcile: "a reconcile is answered after the repairs that it starts" },
    take: fillSlots,
  },
  {
    name: "followReconcile",
    applies: ({ rolloutState, row }) => rolloutState.checking !== undefined && row.operations.suspended === undefined,
    take: followReconcile,
  },
  {
    name: "collectPast",
    applies: ({ rolloutState }) => rolloutState.past !== undefined,
    take: collectPast,
  },
  {
    name: "renewOwnerBlobs",
    applies: ({ rolloutState }, _check, now) => isToRenew(rolloutState.blobsAt, now),
    take: renewOwnerBlobs,
  },
  {
    name: "deleteOwner",
    applies: ({ row }) => row.operations.deletion?.cascade === "delete",
    take: deleteOwner,
  },
];

/** A deletion with `--cascade=orphan` leaves all objects in place, so it waits for nothing. */
const orphanSteps: readonly PlannerStep[] = [
  {
    name: "forgetOwner",
    applies: () => true,
    take: forgetOwner,
  },
];

/** The decision of a step, and the step's name. */
interface Decided {
  readonly step: string;
  readonly transaction: Exclude<Outcome, undefined>;
}

export async function decideNext(
  known: Known,
  work: CallWork,
  ports: PlannerPorts,
  steps: readonly PlannerStep[],
): Promise<Decided> {
  const repaired = async () => ({ step: "repairList", transaction: await repairList(known, ports) });
  return unlessLost(
    firstOf(known.row.operations.deletion?.cascade === "orphan" ? orphanSteps : steps, known, work, ports),
    repaired,
  );
}

async function firstOf(
  steps: readonly PlannerStep[],
  known: Known,
  work: CallWork,
  ports: PlannerPorts,
): Promise<Decided> {
  for (const { name, applies, take } of steps) {
    if (!applies(known, work, ports.clock.now())) continue;
    const transaction = await take(known, work, ports);
    if (transaction !== undefined) return { step: name, transaction };
  }
  return { step: "goIdle", transaction: await goIdle(known, work, ports) };
}
