import { assign, wakeUp } from "#functions/rollout/assign.ts";
import { forgetSyncs } from "#functions/rollout/forget.ts";
import { hadBefore, missedIn, namesWanted } from "#functions/rollout/give-back.ts";
import { strayedFrom } from "#functions/rollout/let-go.ts";
import { endOf, isLetGo, parkSlot, parkSync, shrinkSlot } from "#functions/rollout/park.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { goOnFromRemembered } from "#functions/rollout/recover-slot.ts";
import { startOver } from "#functions/rollout/retry.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import type { Seen } from "#functions/rollout/seen-slot.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { takenBack } from "#shared/fleet/rollout/assignments.ts";
import { areDoomed, type Deadlines, judge, type Verdict, wasSick } from "#shared/fleet/rollout/judge.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { freezeOfAll, freezeOver, freezeText, isReleased, releasedAt } from "#shared/fleet/rows/brake-row.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { arrivalStates, clusterOf, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Parked, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** Slots looked at in one step. */
const pageSize = 25;

/** Of one leg: how many attempts nothing in them can help, and of how many the failure would not count. */
export interface Doomed {
  readonly all: number;
  readonly preexisting: number;
}

/** Slots that are still to be looked at in this call, and what was found of their deadlines. */
export interface Round {
  readonly slots: SlotRow[];
  /** Clusters of which the slot cannot be read, as far as all were looked at. */
  readonly unread: readonly string[];
  readonly all: boolean;
  /** By `legKey`: those of which a worker that could have begun did not, or cannot go on. */
  readonly stuck: Map<string, number>;
  readonly doomed: Map<string, Doomed>;
  deadline: string | undefined;
}

/** @param clusters - of which something was told; undefined: of any. */
export async function slotsToLookAt(
  { subject }: Pick<Known, "subject">,
  clusters: ReadonlySet<string> | undefined,
  table: Table,
): Promise<Round> {
  const begun = { stuck: new Map(), doomed: new Map(), deadline: undefined };
  if (clusters === undefined) {
    const { rows, unread } = await rowsAbout(ranges.slots(subject), table);
    return { ...begun, slots: [...rows], unread, all: true };
  }
  const wanted = [...clusters].map((cluster) => keys.slot(subject, cluster));
  const found = await table.getMany(wanted, { newer: "kept" });
  return { ...begun, slots: found.filter((row) => !isNewer(row)), unread: [], all: false };
}

/**
 * Clusters that have a slot take the state that they show: what is ready, failed or does not answer gives its slot back.
 * @returns the next page of them, or undefined when all were looked at.
 */
export async function settleSlots(known: Known, round: Round, ports: PlannerPorts): Promise<Transaction | undefined> {
  const page = round.slots.splice(0, pageSize);
  if (page.length === 0) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const seen = await readSeen(transaction, page, ports);
  for (const [index, one] of seen.entries()) {
    const { slot, syncs, clock } = one;
    if (transaction.room() < 4 + syncs.length) {
      // A step of its own has no more room for it than this one.
      const smaller = index === 0 ? shrinkSlot(transaction, one) : slot;
      round.slots.unshift(smaller, ...page.slice(index + 1));
      break;
    }
    const settled = await settle(transaction, one, ports);
    const deadline = settled && (settled.deadline ?? stuckAt(slot, syncs, clock));
    const isOver = deadline !== undefined && deadline <= transaction.at;
    const isForOthers = settled === one.verdict && areDoomed(slot, syncs);
    if (isOver || isForOthers) count(round.stuck, slot);
    if (isForOthers) doom(round.doomed, { slot, isPreexisting: wasSick(syncs) });
    if (isOver) continue;
    round.deadline = [round.deadline, deadline].sort()[0];
    // Who looks at some knows of no other deadline than the unit does.
    const { deadline: nearest = "~" } = transaction.unit;
    if (!round.all && deadline !== undefined && deadline < nearest) transaction.edit({ deadline });
  }
  return transaction;
}

function count(slots: Map<string, number>, slot: SlotRow): void {
  const key = legKeyOf(slot);
  slots.set(key, (slots.get(key) ?? 0) + 1);
}

function doom(
  slots: Map<string, Doomed>,
  { slot, isPreexisting }: { readonly slot: SlotRow; readonly isPreexisting: boolean },
): void {
  const { all = 0, preexisting = 0 } = slots.get(legKeyOf(slot)) ?? {};
  slots.set(legKeyOf(slot), { all: all + 1, preexisting: preexisting + Number(isPreexisting) });
}

function legKeyOf({ leg }: SlotRow): string {
  return leg === undefined ? "" : legKey(leg);
}

export function clockOf({ row }: Pick<Known, "row">, now: Date): Deadlines & { readonly now: Date } {
  const progressSeconds = secondsOf(relationOf(row).rollout.progressDeadline);
  const { suspended, resumed } = row.operations;
  return { now, progressSeconds, pausedAt: suspended?.at, resumedAt: resumed?.at };
}

async function readSeen(
  transaction: Transaction,
  slots: readonly SlotRow[],
  { table }: PlannerPorts,
): Promise<readonly Seen[]> {
  const { known, now } = transaction;
  const { subject, brake, unit } = known;
  const isSuspended = known.row.operations.suspended !== undefined;
  const areBehind = isSuspended || unit.arrivals.failed + (unit.arrivals.away ?? 0) > 0;
  const wanted = slots.flatMap(({ cluster, attempts, leg }) => [
    ...Object.keys(attempts).map((name) => keys.sync(cluster, subject.namespace, name)),
    ...(isReleased(brake) ? [] : [keys.fleet(cluster)]),
    ...(leg === undefined || areBehind ? arrivalStates.map((state) => keys.arrival(subject, state, cluster)) : []),
  ]);
  const rows = await table.getMany(wanted, { newer: "kept" });
  transaction.see(rows);
  const found = rows.filter((row) => row.type === "SyncOnCluster");
  const fleet = rows.filter((row) => row.type === "Fleet");
  const unread = new Set(rows.filter(isNewer).flatMap((row) => keys.sync.parse(row)?.cluster ?? []));
  const judged = slots.map((slot) => {
    const syncs = found.filter(({ cluster }) => cluster === slot.cluster);
    const labels = fleet.find(({ name }) => name === slot.cluster)?.labels;
    const freezing = labels && { freeze: freezeOver(brake, labels, now), releasedAt: releasedAt(brake, labels, now) };
    const clock = { ...clockOf(known, now), freezing };
    // Who wrote what cannot be read may be at it still.
    const isPaused = clock.pausedAt !== undefined || freezing?.freeze !== undefined;
    const isUnsure = unread.has(slot.cluster) && (isPaused || stuckAt(slot, syncs, clock) > transaction.at);
    const verdict = isUnsure ? ({ state: "Assigned", reason: "" } as const) : judge(slot, syncs, clock);
    const parked = unread.has(slot.cluster) ? undefined : parkedFor({ slot, syncs, clock, verdict }, transaction);
    const arrivals = rows.filter((row) => row.type === "Arrival").filter(({ cluster }) => cluster === slot.cluster);
    return { slot, syncs, arrivals, clock, verdict, parked };
  });
  const ending = judged.filter((one) => one.slot.parking !== undefined || one.parked !== undefined || isCutShort(one));
  const asked = ending.map(({ slot }) => keys.lease(slot.cluster));
  const leases = new Map((await table.getMany(asked, { newer: "kept" })).map((row) => [clusterOf(row), row]));
  return judged.map((one) => ({ ...one, lease: leases.get(one.slot.cluster) }));
}

/** What failed; and whom a freeze holds for as long as it would have had time: others may need the slot meanwhile. */
function parkedFor(
  { slot, syncs, clock, verdict }: Pick<Seen, "slot" | "syncs" | "clock" | "verdict">,
  { known, now, at }: Transaction,
): Parked | undefined {
  if (verdict.state === "Failed") return { reason: verdict.reason, at };
  if (verdict.state === "Assigned" && isOvertaken(slot, known))
    return { reason: "everything of it is to be deleted", at };
  const freeze = clock.freezing?.freeze;
  if (verdict.state !== "Assigned" || freeze === undefined || stuckAt(slot, syncs, clock) > at) return undefined;
  const isForNobody = clock.pausedAt !== undefined || freezeOfAll(known.brake, now) !== undefined;
  return isForNobody ? undefined : { reason: freezeText(freeze), at, freeze: freeze.name };
}

/** The whole subject is being deleted: nobody waits for what else was begun, for it may never be done. */
function isOvertaken({ content }: SlotRow, { row, unit, contents }: Known): boolean {
  return (
    row.operations.deletion !== undefined && content < unit.last && contents.get(unit.last)?.plan.farewell !== undefined
  );
}

/** What has no deadline is no failure, and for as long as one would be it is waited for. */
function stuckAt({ since }: SlotRow, syncs: readonly SyncRow[], { resumedAt, freezing, progressSeconds }: Deadlines) {
  const starts = syncs.flatMap(({ desired }) => desired.startAt ?? []);
  const ends = [resumedAt, freezing?.releasedAt, freezing?.freeze?.at].filter((time) => time !== undefined);
  const [last = since] = [since, ...starts, ...ends].sort().reverse();
  return later(last, progressSeconds);
}

/** @returns when it is to be looked at, where it keeps its slot. */
async function settle(
  transaction: Transaction,
  seen: Seen,
  ports: PlannerPorts,
): Promise<Pick<Verdict, "deadline"> | undefined> {
  const { slot, syncs, verdict, parked, lease } = seen;
  if (slot.parking !== undefined) {
    if (!isLetGo(slot.parking.fence, lease, transaction.now)) return endOf(lease, transaction.now);
    transaction.dropSlot(slot);
    return undefined;
  }
  if (await takeBack(transaction, seen, ports)) return undefined;
  const recovered = goOnFromRemembered(transaction, seen);
  if (recovered !== undefined) return settle(transaction, recovered, ports);
  if (verdict.state === "Assigned" && parked === undefined) return verdict;
  if (parked !== undefined) {
    for (const sync of syncs) parkSync(transaction, sync, parked);
    parkSlot(transaction, seen);
  } else if (isCutShort(seen)) parkSlot(transaction, seen);
  else transaction.dropSlot(slot);
  if (verdict.state === "Succeeded" || slot.unwritten === true) for (const sync of syncs) removeGone(transaction, sync);
  if (slot.leg === undefined) settleArrival(transaction, slot, verdict);
  else await settleTarget(transaction, seen, ports);
  // Nothing was taken back of what is wanted again: the group is suspended.
  const missed = missedIn(transaction, slot, syncs);
  if (missed !== undefined) transaction.putArrival(slot.cluster, "waiting", { why: "returned", content: missed });
  return parked === undefined && !isCutShort(seen) ? undefined : endOf(lease, transaction.now);
}

/**
 * An attempt of the slot ends, and its worker did not say so: it was forgotten with its Cluster, left to the cluster, or paused
 * because the slot had no room. The worker may believe for a while that the attempt goes on.
 */
function isCutShort({ slot, syncs, verdict }: Pick<Seen, "slot" | "syncs" | "verdict">): boolean {
  if (verdict.state === "Assigned") return false;
  if (slot.unwritten === true) return true;
  return Object.entries(slot.attempts).some(([name, attempt]) => {
    const desired = syncs.find((sync) => sync.name === name)?.desired;
    return desired?.attempt !== attempt || desired.action === "orphan";
  });
}

async function settleTarget(transaction: Transaction, seen: Seen, ports: PlannerPorts): Promise<void> {
  const { slot, syncs, arrivals, verdict } = seen;
  const leg = slot.leg && transaction.leg(slot.leg);
  if (leg === undefined) return;
  const { cluster, order = 0, attempts, since: assignedAt } = slot;
  const { state, reason } = verdict;
  if (state === "Waiting" || state === "Assigned") {
    const counted = transaction.count(leg, { Assigned: -1, Waiting: 1 });
    transaction.putLeg({ ...counted, returned: [...counted.returned, order] });
    return;
  }
  startOver(transaction, { arrivals, left: [] });
  const strayed = state === "Succeeded" ? undefined : await strayedFrom(transaction, { leg, cluster }, ports);
  const said = strayed === undefined ? { state, reason } : { state: "Skipped" as const, reason: strayed };
  const preexisting = wasSick(syncs) || undefined;
  transaction.record(leg, { cluster, order }, "Assigned", { ...said, attempts, assignedAt, preexisting });
}

function settleArrival(transaction: Transaction, { cluster, stage, restores }: SlotRow, verdict: Verdict): void {
  const { state, reason } = verdict;
  const again = { why: "returned" as const, ...defined({ content: restores }) };
  if (state === "Waiting" || state === "Assigned") transaction.putArrival(cluster, "waiting", again);
  if (state === "Failed") transaction.putArrival(cluster, "failed", { ...again, reason, stage });
  if (state === "Unreachable") transaction.putArrival(cluster, "away", { ...again, reason, stage });
}

/** Rows of Syncs that were deleted from the cluster. An orphan's row stays: its attempts must never repeat. */
function removeGone(transaction: Transaction, sync: SyncRow): void {
  const { desired, observed } = sync;
  const isGone = observed?.phase === "Gone" && observed.attempt === desired.attempt;
  if (desired.action === "delete" && isGone) transaction.delete(sync);
}

/**
 * A removal that is no longer wanted ends here: what was there before it is given back in the same slot. What is wanted for
 * others only is left to the cluster.
 */
async function takeBack(transaction: Transaction, { slot, syncs }: Seen, ports: PlannerPorts): Promise<boolean> {
  const { known, now } = transaction;
  const { deletion, suspended } = known.row.operations;
  // Nothing is deleted meanwhile either: a worker reads both before it writes.
  if (deletion !== undefined || suspended !== undefined) return false;
  const wanted = namesWanted(known);
  const withdrawn = syncs.flatMap((sync) => {
    const desired = wanted.has(sync.name) ? takenBack(sync, now) : undefined;
    return desired === undefined ? [] : [{ sync, desired }];
  });
  if (withdrawn.length === 0) return false;
  const [fleet] = await ports.table.getMany([keys.fleet(slot.cluster)], { newer: "kept" });
  const own = fleet === undefined || isNewer(fleet) ? wanted : namesWanted(known, fleet);
  const attempts: Record<string, number> = { ...slot.attempts };
  for (const { sync, desired } of withdrawn) {
    if (own.has(sync.name))
      assign(transaction, { cluster: slot.cluster, name: sync.name, desired, before: sync }, ports);
    else forgetSyncs(transaction, { syncs: [sync], as: "deselected" }, ports);
    attempts[sync.name] = desired.attempt;
  }
  const leg = slot.leg && transaction.leg(slot.leg);
  const { cluster, order = 0 } = slot;
  const outcome = {
    state: "Superseded" as const,
    reason: "its removal was taken back",
    attempts,
    assignedAt: slot.since,
  };
  if (leg !== undefined) transaction.record(leg, { cluster, order }, "Assigned", outcome);
  const { leg: _leg, order: _order, ...kept } = slot;
  const restores = hadBefore(transaction.unit, slot);
  transaction.putSlot({ ...kept, attempts, since: transaction.at, ...defined({ restores }) }, slot);
  transaction.messages.push(...wakeUp(cluster, undefined, now));
  return true;
}
