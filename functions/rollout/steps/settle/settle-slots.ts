import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { withZones } from "#functions/rollout/steps/settle/silent-zones.ts";
import { startOver, strayedFrom } from "#functions/rollout/write/another-turn.ts";
import {
  assign,
  awaitZone,
  forgetAssigned,
  pauseSlot,
  pauseSync,
  shrinkSlot,
  wakeUp,
} from "#functions/rollout/write/assign.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import type { Doomed } from "#shared/fleet/rollout/advance.ts";
import { takenBack } from "#shared/fleet/rollout/assignments.ts";
import type { Known, SeenSlot, Verdict } from "#shared/fleet/rollout/facts.ts";
import { hasSkips, skipOf, skippedText } from "#shared/fleet/rollout/gate-acts.ts";
import { afterTurn } from "#shared/fleet/rollout/guarded-objects.ts";
import {
  areDoomed,
  clockOf,
  closedIn,
  closingOf,
  endOf,
  isClosed,
  isCutShort,
  isHandedBack,
  judge,
  mayHaveBegun,
  pausedFor,
  stuckAt,
  wasUnhealthy,
} from "#shared/fleet/rollout/judge.ts";
import { desiredNames, missedIn } from "#shared/fleet/rollout/lost-templates.ts";
import { hadBefore } from "#shared/fleet/rollout/order.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { freezeOver, isReleased, releasedAt } from "#shared/fleet/rows/freezes-row.ts";
import { catchUpStates, clusterOfKey, keys } from "#shared/fleet/rows/keys.ts";
import { acceptedRow } from "#shared/fleet/rows/lineage.ts";
import type { OwnerRow, Skip } from "#shared/fleet/rows/object-rows.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { mayTakeOver } from "#shared/kube/parent-object.ts";

/** Slots checked in one step. */
const pageSize = 25;

/**
 * Clusters with a slot get the state that they show: one that is ready, failed or unreachable releases its slot.
 * Checks the next page of them.
 */
export async function settleSlots(known: Known, { round }: CallWork, ports: PlannerPorts): Promise<Transaction> {
  const page = round.slots.splice(0, pageSize);
  const transaction = new Transaction(known, ports.clock.now());
  const seen = await readSeen(transaction, page, ports);
  for (const [index, one] of seen.entries()) {
    const { slot, syncs, clock, downFrom, movedTo } = one;
    if (transaction.room() < 4 + syncs.length) {
      // A step of its own has no more room for it than this one.
      const smaller = index === 0 ? shrinkSlot(transaction, one) : slot;
      round.slots.unshift(smaller, ...page.slice(index + 1));
      break;
    }
    const settled = await settle(transaction, one, ports);
    if (movedTo !== undefined && settled === one.verdict) awaitZone(transaction, slot, movedTo);
    const deadline = settled && (settled.deadline ?? stuckAt(slot, syncs, clock));
    const isOver = deadline !== undefined && deadline <= transaction.at;
    const isForOthers = settled === one.verdict && areDoomed(slot, syncs);
    if (isOver || isForOthers) count(round.stuck, slot);
    if (isForOthers) doom(round.doomed, { slot, isPreexisting: wasUnhealthy(syncs) });
    const closing = settled && closingOf(slot, syncs, transaction.now);
    const [next] = [...(isOver ? [] : [deadline]), closing, settled && downFrom]
      .filter((time) => time !== undefined)
      .sort();
    if (next === undefined) continue;
    round.deadline = [round.deadline, next].sort()[0];
    // A check of some slots knows no other deadline than that of the rollout state.
    const { deadline: nearest = "~" } = transaction.rolloutState;
    if (!round.all && next < nearest) transaction.edit({ deadline: next });
  }
  return transaction;
}

function count(slots: Map<string, number>, slot: SlotRow): void {
  const key = stageRunKeyOf(slot);
  slots.set(key, (slots.get(key) ?? 0) + 1);
}

function doom(
  slots: Map<string, Doomed>,
  { slot, isPreexisting }: { readonly slot: SlotRow; readonly isPreexisting: boolean },
): void {
  const { all = 0, preexisting = 0 } = slots.get(stageRunKeyOf(slot)) ?? {};
  slots.set(stageRunKeyOf(slot), { all: all + 1, preexisting: preexisting + Number(isPreexisting) });
}

function stageRunKeyOf({ stageRun }: SlotRow): string {
  return stageRun === undefined ? "" : stageRunKey(stageRun);
}

async function readSeen(
  transaction: Transaction,
  slots: readonly SlotRow[],
  ports: PlannerPorts,
): Promise<readonly SeenSlot[]> {
  const { table } = ports;
  const { known, now } = transaction;
  const { owner, freezeState, rolloutState } = known;
  const isSuspended = known.row.operations.suspended !== undefined;
  const areBehind = isSuspended || rolloutState.catchUps.failed + (rolloutState.catchUps.away ?? 0) > 0;
  const desired = slots.flatMap(({ cluster, attempts, stageRun }) => [
    ...Object.keys(attempts).map((name) => keys.sync(cluster, owner.namespace, name)),
    ...(isReleased(freezeState) && !hasSkips(known.row.operations, stageRun, rolloutState)
      ? []
      : [keys.fleet(cluster)]),
    ...(stageRun === undefined || areBehind ? catchUpStates.map((state) => keys.catchUp(owner, state, cluster)) : []),
  ]);
  const rows = await table.getMany(desired, { newer: "kept" });
  transaction.see(rows);
  const found = rows.filter((row) => row.type === "SyncOnCluster");
  const fleet = rows.filter((row) => row.type === "Fleet");
  const unread = new Set(rows.filter(isNewer).flatMap((row) => keys.sync.parse(row)?.cluster ?? []));
  const alone = slots.map((slot) => {
    const syncs = found.filter(({ cluster }) => cluster === slot.cluster);
    const entry = fleet.find(({ name }) => name === slot.cluster);
    const labels = entry?.labels;
    const skip =
      entry && slot.stageRun && skipOf(known.row.operations, slot.stageRun, { cluster: entry, rolloutState });
    const freezing = labels && {
      freeze: freezeOver(freezeState, labels, now),
      releasedAt: releasedAt(freezeState, labels, now),
    };
    const clock = { ...clockOf(known, now), freezing };
    // The writer of an unreadable row may still be working.
    const isPaused = clock.pausedAt !== undefined || freezing?.freeze !== undefined;
    const isUnsure = unread.has(slot.cluster) && (isPaused || stuckAt(slot, syncs, clock) > transaction.at);
    const verdict = isUnsure ? ({ state: "Assigned", reason: "" } as const) : judge(slot, syncs, clock);
    const paused = unread.has(slot.cluster) ? undefined : pausedFor({ slot, syncs, clock, verdict, skip }, transaction);
    const catchUps = rows.filter((row) => row.type === "CatchUp").filter(({ cluster }) => cluster === slot.cluster);
    return { slot, syncs, catchUps, clock, verdict, paused, skip };
  });
  const judged = await withZones(transaction, alone, ports);
  const ending = judged.filter(
    (one) => one.slot.releasing !== undefined || one.paused !== undefined || isCutShort(one) || isClosed(one, now),
  );
  const asked = ending.map(({ slot }) => keys.lease(slot.cluster));
  const leases = new Map((await table.getMany(asked, { newer: "kept" })).map((row) => [clusterOfKey(row), row]));
  return judged.map((one) => ({ ...one, lease: leases.get(one.slot.cluster) }));
}

/** @returns when to check it again, when it keeps its slot. */
async function settle(
  transaction: Transaction,
  seen: SeenSlot,
  ports: PlannerPorts,
): Promise<Pick<Verdict, "deadline"> | undefined> {
  const { slot, syncs, verdict, paused, lease } = seen;
  if (slot.releasing !== undefined) {
    if (!isHandedBack(slot.releasing.fence, lease, transaction.now)) return endOf(lease, transaction.now);
    transaction.dropSlot(slot);
    return undefined;
  }
  if (await takeBack(transaction, seen, ports)) return undefined;
  const recovered = goOnFromRemembered(transaction, seen);
  if (recovered !== undefined) return settle(transaction, recovered, ports);
  const closed = withoutClosed(transaction, seen);
  if (closed !== undefined) return settle(transaction, closed, ports);
  if (verdict.state === "Assigned" && paused === undefined) return verdict;
  if (paused !== undefined) {
    for (const sync of syncs) pauseSync(transaction, sync, paused);
    pauseSlot(transaction, seen);
  } else if (isCutShort(seen)) pauseSlot(transaction, seen);
  else transaction.dropSlot(slot);
  const { rollout, cluster, attempts } = slot;
  const ended = syncs.filter(({ name, desired }) => attempts[name] === desired.attempt);
  const guard = afterTurn(transaction.rolloutState.guard, { cluster, rollout, syncs: ended, at: transaction.at });
  if (guard !== transaction.rolloutState.guard) transaction.edit({ guard });
  if (verdict.state === "Succeeded" || slot.unwritten === true) for (const sync of syncs) removeGone(transaction, sync);
  if (slot.stageRun === undefined) settleCatchUp(transaction, slot, verdict);
  else await settleTarget(transaction, seen, ports);
  // A deletion that is no longer desired was not withdrawn: the group is suspended.
  // A restore that a stage run has adopted is no part of its rollout, so that its target does not bring it back.
  const isPutOff = slot.stageRun !== undefined && (verdict.state === "Waiting" || verdict.state === "Assigned");
  const missed = missedIn(transaction, slot, syncs) ?? (isPutOff ? slot.restores : undefined);
  if (missed !== undefined) transaction.putCatchUp(slot.cluster, "waiting", { why: "returned", rollout: missed });
  return paused === undefined && !isCutShort(seen) ? undefined : endOf(lease, transaction.now);
}

async function settleTarget(transaction: Transaction, seen: SeenSlot, ports: PlannerPorts): Promise<void> {
  const { slot, syncs, catchUps, verdict, skip } = seen;
  const stageRun = slot.stageRun && transaction.stageRun(slot.stageRun);
  if (stageRun === undefined) return;
  const { cluster, order = 0, attempts, since: assignedAt } = slot;
  const { state, reason } = verdict;
  if (skip !== undefined) {
    startOver(transaction, { catchUps, left: [] });
    const outcome = { state: "Skipped", reason: skippedOutcome(skip, verdict), takenOut: true } as const;
    transaction.record(stageRun, { cluster, order }, "Assigned", { ...outcome, attempts, assignedAt });
    return;
  }
  if (state === "Waiting" || state === "Assigned") {
    const counted = transaction.count(stageRun, { Assigned: -1, Waiting: 1 });
    transaction.putStageRun({ ...counted, returned: [...counted.returned, order] });
    return;
  }
  startOver(transaction, { catchUps, left: [] });
  const strayed = state === "Succeeded" ? undefined : await strayedFrom(transaction, { stageRun, cluster }, ports);
  const said = strayed === undefined ? { state, reason } : { state: "Skipped" as const, reason: strayed };
  const preexisting = wasUnhealthy(syncs) || undefined;
  transaction.record(stageRun, { cluster, order }, "Assigned", { ...said, attempts, assignedAt, preexisting });
}

/** The reason of the skip, and what the attempt had come to, if it had ended. */
function skippedOutcome(skip: Skip, { state, reason }: Verdict): string {
  if (state === "Waiting" || state === "Assigned") return skippedText(skip);
  return `${skippedText(skip)}; its attempt ended ${state}${reason === "" ? "" : `: ${reason}`}`;
}

function settleCatchUp(transaction: Transaction, { cluster, stage, restores }: SlotRow, verdict: Verdict): void {
  const { state, reason } = verdict;
  const again = { why: "returned" as const, ...defined({ rollout: restores }) };
  if (state === "Waiting" || state === "Assigned") transaction.putCatchUp(cluster, "waiting", again);
  if (state === "Failed") transaction.putCatchUp(cluster, "failed", { ...again, reason, stage });
  if (state === "Unreachable") transaction.putCatchUp(cluster, "away", { ...again, reason, stage });
}

/** Rows of Syncs that were deleted from the cluster. An orphan's row stays, because its attempts must never repeat. */
function removeGone(transaction: Transaction, sync: SyncRow): void {
  const { desired, observed } = sync;
  const isGone = observed?.phase === "Gone" && observed.attempt === desired.attempt;
  if (desired.action === "delete" && isGone) transaction.delete(sync);
}

/**
 * Withdraws a deletion that is no longer desired: the assignment before it is restored in the same slot. A Sync that
 * only other clusters desire is left in the cluster.
 */
async function takeBack(transaction: Transaction, { slot, syncs }: SeenSlot, ports: PlannerPorts): Promise<boolean> {
  const { known, now } = transaction;
  const { deletion, suspended } = known.row.operations;
  // Nothing is deleted meanwhile either, because a worker reads both before it writes.
  if (deletion !== undefined || suspended !== undefined) return false;
  const names = desiredNames(known);
  const withdrawn = syncs.flatMap((sync) => {
    const desired = names.has(sync.name) ? takenBack(sync, now) : undefined;
    return desired === undefined ? [] : [{ sync, desired }];
  });
  if (withdrawn.length === 0) return false;
  const [fleet] = await ports.table.getMany([keys.fleet(slot.cluster)], { newer: "kept" });
  const own = fleet === undefined || isNewer(fleet) ? names : desiredNames(known, fleet);
  const attempts: Record<string, number> = { ...slot.attempts };
  for (const { sync, desired } of withdrawn) {
    if (own.has(sync.name))
      assign(transaction, { cluster: slot.cluster, name: sync.name, desired, before: sync }, ports);
    else forgetAssigned(transaction, { syncs: [sync], as: "deselected" }, ports);
    attempts[sync.name] = desired.attempt;
  }
  const stageRun = slot.stageRun && transaction.stageRun(slot.stageRun);
  const { cluster, order = 0 } = slot;
  const outcome = {
    state: "Superseded" as const,
    reason: "its removal was taken back",
    attempts,
    assignedAt: slot.since,
  };
  if (stageRun !== undefined) transaction.record(stageRun, { cluster, order }, "Assigned", outcome);
  const { stageRun: _stageRun, order: _order, ...kept } = slot;
  const restores = hadBefore(transaction.rolloutState, slot.stage);
  transaction.putSlot({ ...kept, attempts, since: transaction.at, ...defined({ restores }) }, slot);
  transaction.messages.push(...wakeUp(cluster, undefined, now));
  return true;
}

type Recovery = NonNullable<OwnerRow["operations"]["recovered"]>;

/**
 * After a `recover --all`, a Sync that its cluster refuses continues from what the cluster remembers: the new table may
 * never have assigned anything to that cluster when people asked. Each Sync does so once for each `recover`, so that
 * two tables in use at the same time do not take turns.
 * @returns the slot without these Syncs, which its cluster's next turn assigns again; undefined when none continues
 *   like that.
 */
function goOnFromRemembered(transaction: Transaction, seen: SeenSlot): SeenSlot | undefined {
  const { slot, syncs } = seen;
  const { recovered: act } = transaction.known.row.operations;
  if (act?.all !== true) return undefined;
  const refused = syncs.filter((sync) => slot.attempts[sync.name] === sync.desired.attempt && isRefused(sync, act));
  if (refused.length === 0) return undefined;
  const { by, at, reason } = act;
  for (const sync of refused) {
    transaction.put<SyncRow>(acceptedRow(sync, { by, at, ...defined({ reason }) }), sync);
  }
  return slotWithout(transaction, seen, refused);
}

/**
 * Attempts that no worker began before the windows over their cluster closed are paused: their target waits until the
 * windows open. Those that have begun continue.
 * @returns the slot without them; undefined when all continue.
 */
function withoutClosed(transaction: Transaction, seen: SeenSlot): SeenSlot | undefined {
  const { slot, syncs, verdict, paused, lease } = seen;
  if (verdict.state !== "Assigned" || paused !== undefined) return undefined;
  const closed = closedIn(slot, syncs, transaction.now).filter((sync) => !mayHaveBegun(lease, sync));
  if (closed.length === 0) return undefined;
  for (const sync of closed) {
    const reason = `no worker began it before its window closed at ${sync.desired.beginBefore}`;
    pauseSync(transaction, sync, { reason, at: transaction.at, window: true });
  }
  return slotWithout(transaction, seen, closed);
}

/** The slot without some of its Syncs, which the next turn of its cluster assigns again. */
function slotWithout(transaction: Transaction, seen: SeenSlot, syncs: readonly SyncRow[]): SeenSlot {
  const { slot, clock } = seen;
  const names = new Set(syncs.map(({ name }) => name));
  const attempts = Object.fromEntries(Object.entries(slot.attempts).filter(([name]) => !names.has(name)));
  const left = { ...slot, attempts, unwritten: true as const };
  const others = seen.syncs.filter(({ name }) => !names.has(name));
  const verdict = judge(left, others, clock);
  const paused = verdict.state === "Failed" ? { reason: verdict.reason, at: transaction.at } : undefined;
  if (verdict.state === "Assigned") transaction.putSlot(left, slot);
  return { ...seen, slot: left, syncs: others, verdict, paused };
}

function isRefused({ desired, observed, recovered }: SyncRow, act: Recovery): boolean {
  const { remembered } = observed ?? {};
  if (remembered === undefined || observed?.attempt !== desired.attempt || observed.phase !== "Failed") return false;
  // Objects that were applied since are protected again from another table.
  if ((observed.applied?.at ?? "") >= act.at || recovered?.at === act.at) return false;
  return mayTakeOver(remembered, act.from);
}
