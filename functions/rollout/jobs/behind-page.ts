import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { startOver } from "#functions/rollout/write/another-turn.ts";
import { seeClusters, type Transaction } from "#functions/rollout/write/transaction.ts";
import { isSelected, stageNow } from "#shared/fleet/rollout/facts.ts";
import { catchUpRollout, newestOf } from "#shared/fleet/rollout/order.ts";

/** Clusters that got something older than their stage gives them now catch up. @returns as `catchUpPage`. */
export async function behindPage(
  transaction: Transaction,
  page: readonly string[],
  ports: PlannerPorts,
): Promise<number> {
  const { known } = transaction;
  const found = await seeClusters(transaction, { clusters: page, with: ["catchUps", "syncs", "left"] }, ports.table);
  for (const [index, cluster] of page.entries()) {
    const rows = found.get(cluster);
    if (transaction.room() < 4 + (rows?.left.length ?? 0)) return index;
    const stage = stageNow(known, rows?.fleet);
    if (rows === undefined || stage?.current === undefined || !isSelected(known, rows.fleet)) continue;
    const has = newestOf(rows.syncs);
    if ((catchUpRollout(known.rolloutState, stage, has) ?? 0) <= has) continue;
    startOver(transaction, rows);
    transaction.putCatchUp(cluster, "waiting", { why: "returned" });
  }
  return page.length;
}
