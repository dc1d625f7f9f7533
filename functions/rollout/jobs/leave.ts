import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { forgetAssigned, pauseSlot } from "#functions/rollout/write/assign.ts";
import { seeClusters, type Transaction } from "#functions/rollout/write/transaction.ts";
import { toForget } from "#shared/fleet/rollout/assignments.ts";
import { type ClusterRows, isLeftBehind, isSelected } from "#shared/fleet/rollout/facts.ts";

const outcome = { state: "Skipped" as const, reason: "no longer selected; its objects stay" };

/** Forgets the Syncs of clusters that are no longer selected; their objects stay. @returns the number of clusters. */
export async function leavePage(
  transaction: Transaction,
  page: readonly string[],
  ports: PlannerPorts,
): Promise<number> {
  const { known } = transaction;
  const parts = ["slot", "lease", "catchUps", "syncs", "targets", "left"] as const;
  const found = await seeClusters(transaction, { clusters: page, with: parts }, ports.table);
  for (const [index, cluster] of page.entries()) {
    const rows = found.get(cluster);
    if (rows === undefined) continue;
    // A deletion concerns every cluster that has something, selected or not.
    if (known.row.operations.deletion !== undefined && rows.fleet !== undefined) continue;
    if (!forget(transaction, rows, ports)) return index;
    for (const catchUp of rows.catchUps) transaction.dropCatchUp(catchUp);
    // Clusters that kept their stage from passing no longer do.
    for (const target of [...rows.targets.filter(isLeftBehind), ...rows.left]) transaction.amend(target, outcome);
    takeSlot(transaction, rows);
  }
  return page.length;
}

/** @returns false when not all of it fitted: the rest is for the next step. */
function forget(transaction: Transaction, { fleet, syncs }: ClusterRows, ports: PlannerPorts): boolean {
  const { known } = transaction;
  // The cluster was selected again meanwhile, or another one has its name: its Syncs are not those that were assigned.
  const as = fleet === undefined || isSelected(known, fleet) ? "gone" : "deselected";
  const forgotten = toForget(syncs, as);
  const room = transaction.room() - 6 - known.rolloutState.stages.length;
  forgetAssigned(transaction, { syncs: forgotten.slice(0, Math.max(0, room)), as }, ports);
  return room >= forgotten.length;
}

function takeSlot(transaction: Transaction, { cluster, slot, lease }: ClusterRows): void {
  if (slot === undefined || slot.releasing !== undefined) return;
  const stageRun = slot.stageRun && transaction.stageRun(slot.stageRun);
  if (stageRun !== undefined)
    transaction.record(stageRun, { cluster, order: slot.order ?? 0 }, "Assigned", {
      ...outcome,
      attempts: slot.attempts,
    });
  pauseSlot(transaction, { slot, lease });
}
