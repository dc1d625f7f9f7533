import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { startOver } from "#functions/rollout/write/another-turn.ts";
import { seeClusters, type Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import type { ClusterRows } from "#shared/fleet/rollout/facts.ts";
import { lostOf, syncNames } from "#shared/fleet/rollout/lost-templates.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type { Job, RolloutRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/** Targets checked in one step. */
const pageSize = 30;

/**
 * Targets that have lost something catch up with their stage for it, under whichever snapshot they lost it. Clusters
 * that joined the stage after its snapshot do the same, because the stage that they left may have lost it to that
 * rollout.
 */
export async function restorePage(
  transaction: Transaction,
  job: Extract<Job, { do: "restore" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { stageRun: ref, from, at = 0 } = job;
  const stageRun = transaction.stageRun(ref);
  if (stageRun === undefined) return undefined;
  const { table } = ports;
  const late = await lateIn(transaction, stageRun, ports);
  const orders = Array.from({ length: Math.max(0, Math.min(pageSize, stageRun.size - at)) }, (_, index) => at + index);
  const snapshot = [...(await readSnapshot(stageRun, orders, ports.lists)).values()].map(({ cluster }) => cluster);
  // The list of members stays as it is while there are jobs.
  const clusters = orders.length > 0 ? snapshot : late.slice(at - stageRun.size, at - stageRun.size + pageSize);
  const found = await seeClusters(transaction, { clusters, with: ["slot", "catchUps", "syncs"] }, table);
  for (const [index, cluster] of clusters.entries()) {
    if (transaction.room() < 4) return { ...job, at: at + index };
    const rows = found.get(cluster);
    if (rows === undefined || !hasLost(transaction, { rows, stageRun, rollout: transaction.rollout(from) })) continue;
    startOver(transaction, { ...rows, left: [] });
    transaction.putCatchUp(cluster, "waiting", { why: "returned", rollout: from });
  }
  const next = at + clusters.length;
  return next < stageRun.size + late.length ? { ...job, at: next } : undefined;
}

/** Members that joined its stage after the snapshot. */
async function lateIn(
  { known, rolloutState }: Transaction,
  stageRun: StageRunRow,
  ports: PlannerPorts,
): Promise<readonly string[]> {
  const stage = rolloutState.stages.find(({ updatingTo, passed }) => isSameStageRun(updatingTo ?? passed, stageRun));
  if (stage === undefined || stageRun.membersVersion === rolloutState.membersVersion) return [];
  const members = await readMembers(known, ports);
  return members.flatMap(({ cluster, stage: own, since }) =>
    own === stage.name && since > stageRun.membersVersion ? [cluster] : [],
  );
}

/** An empty cluster has lost nothing; and the Syncs of a slot are withdrawn within that slot. */
function hasLost(
  { known }: Transaction,
  {
    rows: { slot, fleet, syncs },
    stageRun,
    rollout,
  }: { readonly rows: ClusterRows; readonly stageRun: StageRunRow; readonly rollout: RolloutRow },
): boolean {
  const inSlot = slot === undefined || slot.releasing !== undefined ? [] : Object.keys(slot.attempts);
  const lost = lostOf(known, rollout, { fleet, syncs }).intersection(syncNames(known, stageRun.putBack ?? []));
  return !lost.isSubsetOf(new Set(inSlot)) && syncs.some(({ desired }) => desired.action === "apply");
}
