import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { assign } from "#functions/rollout/write/assign.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import type { ForgetReason } from "#shared/fleet/rollout/assignments.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { forgotten } from "#shared/fleet/rows/lineage.ts";
import { orphaning, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";

/**
 * Forgets what is assigned to a cluster; its objects stay. The rows stay for their numbers: if these began again, the
 * cluster would refuse every Sync (`ClusterAhead`) when it is selected again.
 * @param syncs - see `toForget`.
 */
export function forgetAssigned(
  transaction: Transaction,
  { syncs, as }: { readonly syncs: readonly SyncRow[]; readonly as: ForgetReason },
  ports: PlannerPorts,
): void {
  const { at, rolloutState } = transaction;
  for (const sync of syncs) {
    if (as === "gone") transaction.put(gone(sync, at), sync);
    else {
      const desired = orphaning(sync.desired, { rollout: rolloutState.last, assignedAt: at });
      assign(transaction, { cluster: sync.cluster, name: sync.name, desired, before: sync }, ports);
    }
  }
}

function gone(sync: SyncRow, at: string): SyncRow {
  const { operations: _operations, paused: _paused, ...kept } = due(sync, undefined);
  return {
    ...withWorkerHalf(kept, { observed: undefined, held: sync.held, deaths: sync.deaths }),
    desired: forgotten(sync, at),
    stateSk: stateIndex.sk("Orphaned", sync),
  };
}
