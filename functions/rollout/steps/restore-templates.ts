import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { takenBy, templatesDesired } from "#shared/fleet/rollout/lost-templates.ts";
import { lastStageRunOf, refOf } from "#shared/fleet/rollout/stage-runs.ts";

/**
 * When templates were put back that a rollout is deleting from a stage, clusters that have lost them get them as the
 * stage has them. A template that is dropped once more, and may have been restored, is deleted by a rollout of its own,
 * because this one has finished with those clusters.
 * @returns undefined when no template was put back, or deleted again, since the last check.
 */
export function restoreTemplates(known: Known, _work: CallWork, ports: PlannerPorts): Transaction | undefined {
  const transaction = new Transaction(known, ports.clock.now());
  for (const stage of known.rolloutState.stages) {
    const stageRun = lastStageRunOf(stage, known.stageRuns);
    if (stageRun === undefined || stage.current === undefined) continue;
    const before = new Set(stageRun.putBack);
    const putBack = templatesDesired(known).intersection(
      stage.updatingTo === undefined ? before : takenBy(stageRun, stage.current, transaction),
    );
    if (putBack.symmetricDifference(before).size === 0) continue;
    transaction.putStageRun({ ...stageRun, putBack: [...putBack] });
    if (!before.isSubsetOf(putBack) && stageRun.rollout === known.rolloutState.last) renumber(transaction);
    if (putBack.isSubsetOf(before)) continue;
    transaction.addJobs({ do: "restore", stageRun: refOf(stageRun), from: stage.current });
  }
  return transaction.hasChanged() ? transaction : undefined;
}
