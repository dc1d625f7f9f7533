import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { digestOf } from "#shared/base/digest.ts";
import type { Assignment } from "#shared/fleet/rollout/assignments.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { due, dueAttributes, queuedNow, watchdogBehind } from "#shared/fleet/rows/due.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import { nextDesired } from "#shared/fleet/rows/lineage.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import type { Message } from "#shared/messages.ts";

export interface AssignedSync extends Assignment {
  /** The Sync as it was read; undefined when it does not exist yet. */
  readonly before: SyncRow | undefined;
}

/** Writes an assignment: only this function decides what a cluster should have. */
export function assign(
  transaction: Transaction,
  { cluster, name, desired, before: found }: AssignedSync,
  { ids, installation }: PlannerPorts,
): void {
  const { known, now, rolloutState } = transaction;
  const { owner, row: assigner } = known;
  const before = found === undefined || found.ownerUid === assigner.uid ? found : unobserved(found);
  const { paused: _paused, ...kept } = before === undefined ? {} : due(before, undefined);
  const key = keys.sync(cluster, owner.namespace, name);
  const from = desired.startAt === undefined ? now : new Date(desired.startAt);
  const isOrphan = desired.action === "orphan";
  // A Sync that has begun does not wait for its start, and a cluster without a slot was not assigned.
  const others = Math.min(changingOf(rolloutState), queuedNow(rolloutState.queuedUntil, now));
  const timer = { ...dueAttributes(key, watchdogBehind(from, others)), dispatches: 1 };
  const row = {
    ...kept,
    ...key,
    ...(isOrphan ? {} : timer),
    cluster,
    namespace: owner.namespace,
    name,
    uid: syncUid(installation, { namespace: owner.namespace, name, cluster }),
    owner,
    ownerUid: assigner.uid,
    desired: nextDesired(desired, before, ids.unique()),
    statePk: stateIndex.pk(owner),
    stateSk: stateIndex.sk(isOrphan ? "Orphaned" : "Assigned", { cluster, name }),
  };
  transaction.put<SyncRow>({ ...row, type: "SyncOnCluster" }, before);
}

/** Leftovers of a former object of the same name do not belong to this one, because it assigned none of them. */
function unobserved({ operations: _operations, ...row }: SyncRow): SyncRow {
  return withWorkerHalf(row, { observed: undefined, held: undefined, deaths: row.deaths });
}

/**
 * Has the shape of a UUID, and is equal for the same place, so that the objects are found again after a loss of the
 * table.
 */
function syncUid(
  installation: string,
  sync: { readonly namespace: string; readonly name: string; readonly cluster: string },
): string {
  const hex = digestOf({ installation, ...sync }).slice("sha256:".length);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** Informs a cluster's worker, at the time when it is to begin. */
export function wakeUp(cluster: string, startAt: string | undefined, now: Date): readonly Message[] {
  if (startAt === undefined) return [{ to: "apply", cluster }];
  const seconds = Math.max(0, Math.ceil((Date.parse(startAt) - now.getTime()) / 1000));
  return [{ to: "apply", cluster, delaySeconds: Math.min(900, seconds) }];
}
