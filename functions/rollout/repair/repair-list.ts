import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readMembers } from "#functions/rollout/read/read-members.ts";
import { clustersWithSyncs } from "#functions/rollout/read/state-entries.ts";
import { startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { membersAnew } from "#functions/rollout/write/write-members.ts";
import { isThere } from "#shared/base/errors.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { lastStageRunOf, refOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * A list that was read is lost, or differs from what was stored: the first such list is made again, and its assignments
 * are found again. @throws StarlingError when no list is lost.
 */
export async function repairList(known: Known, ports: PlannerPorts): Promise<Transaction> {
  const { rolloutState, owner, stageRuns } = known;
  const transaction = new Transaction(known, ports.clock.now());
  if (rolloutState.members !== undefined && (await isLost(rolloutState.members, known, ports))) {
    // No cluster that left is forgotten because of it.
    const clusters = [...(await clustersWithSyncs(owner, ports.table))].sort();
    const before = clusters.map((cluster) => ({ cluster, uid: "", stage: "", labels: {}, values: {}, since: 0 }));
    return membersAnew(known, before, ports);
  }
  if (rolloutState.sweep !== undefined && (await isLost(rolloutState.sweep.clusters, known, ports))) {
    transaction.edit({ sweep: undefined });
    return transaction;
  }
  for (const [index, job] of rolloutState.jobs.entries()) {
    if (!("clusters" in job) || !(await isLost(job.clusters, known, ports))) continue;
    const clusters = await ports.lists.store(await allOf(job, known, ports));
    transaction.edit({ jobs: rolloutState.jobs.with(index, { ...job, clusters, at: 0 }) });
    return transaction;
  }
  for (const [stage, named] of rolloutState.stages.entries()) {
    const stageRun = lastStageRunOf(named, stageRuns);
    for (const { key } of stageRun?.pages ?? []) {
      if (stageRun === undefined || !(await isLost(key, known, ports))) continue;
      if (stageRun.phase !== "Passed") {
        await startStageRun(transaction, { stage, rollout: transaction.rollout(stageRun.rollout) }, ports);
        return transaction;
      }
      // The snapshot is only read for targets that could not be rendered: they are tried again, as by a `reconcile`.
      if (stageRun.unrendered.length === 0) continue;
      transaction.putStageRun({ ...stageRun, unrendered: [] });
      transaction.addJobs({ do: "retry", stageRun: refOf(stageRun) });
      return transaction;
    }
  }
  throw new Error(`a list of ${owner.name} is lost, and nobody knows which`);
}

async function isLost(key: string, { owner }: Known, { lists, log }: PlannerPorts): Promise<boolean> {
  if (await isThere(lists.read(key))) return false;
  log.warn("a list of clusters is lost, and made anew", { ...ownerFields(owner), key });
  return true;
}

/** The clusters that a lost list may have named: a cluster that is where it belongs stays there. */
async function allOf({ do: what }: Job, known: Known, ports: PlannerPorts): Promise<readonly string[]> {
  const members = (await readMembers(known, ports)).map(({ cluster }) => cluster);
  if (what === "catchUp") return members;
  return [...(await clustersWithSyncs(known.owner, ports.table)).difference(new Set(members))].sort();
}
