/** Assigns, pauses and forgets what clusters should have, with the slots for that. */

import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { rowsAbout } from "#functions/rollout/read/read-clusters.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import {
  type Assignment,
  type ForgetReason,
  followsText,
  mostAssignments,
  portionOf,
} from "#shared/fleet/rollout/assignments.ts";
import type { Candidate, Step } from "#shared/fleet/rollout/decide.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { isResumeNew, type Known, type SeenSlot } from "#shared/fleet/rollout/facts.ts";
import { closedFrom, isLive } from "#shared/fleet/rollout/judge.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { servingZone } from "#shared/fleet/rows/cluster-entry.ts";
import { due, dueAttributes, later, queuedNow, queuedUntil, watchdogBehind } from "#shared/fleet/rows/due.ts";
import { keys, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import { forgotten, nextDesired } from "#shared/fleet/rows/lineage.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { orphaning, type Paused, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
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

/** @returns undefined when the owner's status has every resume already. */
export async function reportedResume(
  { owner, row }: Pick<Known, "owner" | "row">,
  { table, clock }: Pick<PlannerPorts, "table" | "clock">,
): Promise<readonly Message[] | undefined> {
  if (!isResumeNew({ row })) return undefined;
  const { rows } = await rowsAbout(ranges.slots(owner), table);
  const standing = rows.filter(({ releasing }) => releasing === undefined);
  return standing.flatMap(({ cluster }) => wakeUp(cluster, undefined, clock.now()));
}

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

export interface Giving extends Candidate {
  readonly step: Extract<Step, { do: "assign" }>;
}

/** Writes the assignments of a cluster, and the slot that it has for them. */
export function giveSlot(transaction: Transaction, giving: Giving, ports: PlannerPorts): SlotRow {
  const { rows, step, rollout, stage, stageRun, order, only } = giving;
  const { cluster, fleet, slot, syncs } = rows;
  const { known, now } = transaction;
  const { written, goingOn, paused, isPart } = portionOf(rows, step);
  const { zones = new Set() } = ports;
  const zone = fleet && zones.size > 0 ? { name: servingZone(fleet, ports), since: transaction.at } : undefined;
  let isKnown = true;
  for (const assignment of written) {
    const before = syncs.find(({ name }) => name === assignment.name);
    isKnown &&= before !== undefined && before.desired.action !== "orphan";
    assign(transaction, { ...assignment, before }, ports);
  }
  for (const sync of paused) pauseSync(transaction, sync, { reason: followsText, at: transaction.at });
  // A Cluster that was deleted, or registered again, since it was checked gets nothing. Its assignments are forgotten
  // after that, before or after this write; for the rest a check costs as much as a write.
  if (!isKnown && fleet !== undefined)
    transaction.write({ check: keys.fleet(cluster), when: [{ attribute: "uid", equals: fleet.uid }] });
  const attempts = Object.fromEntries(written.map(({ name, desired }) => [name, desired.attempt]));
  const given = transaction.putSlot(
    {
      cluster,
      stage,
      rollout: rollout.number,
      attempts: { ...goingOn, ...attempts },
      since: transaction.at,
      ...defined({ stageRun: stageRun && refOf(stageRun), order, restores: only && rollout.number }),
      ...(isPart ? { unwritten: true as const } : {}),
      ...defined({ zone }),
    },
    slot,
  );
  const { correlationId } = rollout;
  for (const message of wakeUp(cluster, written[0]?.desired.startAt, now))
    transaction.messages.push({ ...message, ...defined({ correlationId, zone: zone?.name }) });
  // No worker that begins now can reach its deadline before.
  const first = later(now, secondsOf(relationOf(known.row).rollout.progressDeadline));
  const closings = written.flatMap(({ desired: { beginBefore } }) => beginBefore ?? []).map(closedFrom);
  const [nearest = first] = [first, ...closings].sort();
  const { deadline = nearest } = transaction.rolloutState;
  transaction.edit({
    deadline: deadline < nearest ? deadline : nearest,
    queuedUntil: queuedUntil(transaction.rolloutState.queuedUntil, now),
  });
  return given;
}

/** Workers of another zone than before have to report about the slot. */
export function awaitZone(transaction: Transaction, slot: SlotRow, name: string): void {
  transaction.putSlot({ ...slot, zone: { name, since: transaction.at } }, slot);
  for (const message of wakeUp(slot.cluster, undefined, transaction.now))
    transaction.messages.push({ ...message, zone: name });
}

/** No worker writes there any more until the planner assigns again. */
export function pauseSync(transaction: Transaction, sync: SyncRow, paused: Paused): void {
  const { observed, desired } = sync;
  // Observations of an earlier attempt tell nothing: no worker may begin this one any more.
  const isDone = observed?.attempt === desired.attempt && (observed.phase === "Ready" || observed.phase === "Gone");
  if (isDone) return;
  const row: SyncRow = { ...sync, paused };
  transaction.put<SyncRow>({ ...row, stateSk: stateIndex.sk(syncStateOf(row), row) }, sync);
}

/**
 * An older version of Starling let slots grow beyond one transaction. Such a slot keeps as many attempts as one has
 * now; the others are paused, and the next turn assigns them again.
 */
export function shrinkSlot(transaction: Transaction, { slot, syncs }: Pick<SeenSlot, "slot" | "syncs">): SlotRow {
  const paused = syncs.slice(mostAssignments, 2 * mostAssignments);
  for (const sync of paused) pauseSync(transaction, sync, { reason: followsText, at: transaction.at });
  const left = new Set(paused.map(({ name }) => name));
  const attempts = Object.fromEntries(Object.entries(slot.attempts).filter(([name]) => !left.has(name)));
  return transaction.putSlot({ ...slot, attempts, unwritten: true }, slot);
}

/**
 * Releases the slot when no worker that began before can still be working; otherwise the slot is kept until that worker
 * has finished.
 */
export function pauseSlot(transaction: Transaction, { slot, lease }: Pick<SeenSlot, "slot" | "lease">): void {
  if (lease !== undefined && isNewer(lease)) {
    transaction.putSlot({ ...slot, releasing: { fence: Number.MAX_SAFE_INTEGER } }, slot);
    return;
  }
  // A worker that takes the lease after this reads that nothing is to be written.
  const when = lease === undefined ? ("absent" as const) : { version: lease.version };
  transaction.write({ check: keys.lease(slot.cluster), when });
  if (lease !== undefined && isLive(lease, transaction.now))
    transaction.putSlot({ ...slot, releasing: { fence: lease.fence } }, slot);
  else transaction.dropSlot(slot);
}
