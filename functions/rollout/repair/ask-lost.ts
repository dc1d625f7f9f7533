import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { valuedEntries } from "#functions/rollout/read/read-clusters.ts";
import { readRenderings } from "#functions/rollout/read/read-renderings.ts";
import { askRenderings } from "#functions/rollout/write/ask-renderings.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { requestOf } from "#shared/fleet/rollout/decide.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows } from "#shared/fleet/rollout/facts.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * The row of a rendering that a cluster misses makes it again. When that row has expired too, the rendering is
 * requested again, with the plan of the rollout that the cluster was given. When that rollout is no longer kept, the
 * next one replaces it.
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
