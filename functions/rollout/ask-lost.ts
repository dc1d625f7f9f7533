import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import { readRenderings, requestOf } from "#functions/rollout/decide.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { type ClusterRows, valuedEntries } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * A rendering that a cluster misses is made again by its row. Where that has ended, too, it is asked for anew, as the content
 * has it that the cluster was given; where that is history, what comes next takes its place.
 */
export async function askForLost(
  transaction: Transaction,
  clusters: readonly ClusterRows[],
  ports: PlannerPorts,
): Promise<void> {
  const { owner, rollouts } = transaction.known;
  const missing = clusters.filter(({ syncs }) => syncs.some(misses));
  if (missing.length === 0) return;
  const valued = await valuedEntries(missing, ports.table);
  for (const { cluster, syncs } of missing) {
    const fleet = valued.get(cluster);
    if (fleet === undefined) continue;
    for (const { desired } of syncs.filter(misses)) {
      const rollout = rollouts.get(desired.rollout) ?? (await ports.table.get(keys.rollout(owner, desired.rollout)));
      if (rollout === undefined) continue;
      const target = snapshotTarget({ ...fleet, cluster }, rollout.plan);
      const { rows, newer } = await readRenderings([target], ports.table);
      const requests = target.inputs.flatMap((input, index) =>
        "digest" in input && input.digest === desired.input && !rows.has(input.digest) && !newer.has(input.digest)
          ? requestOf({ rollout, target }, index)
          : [],
      );
      await askRenderings(transaction, { requests, renderings: rows }, ports);
    }
  }
}

function misses({ desired, observed }: SyncRow): boolean {
  return observed?.reason === "RenderingLost" && observed.attempt === desired.attempt && desired.action === "apply";
}
