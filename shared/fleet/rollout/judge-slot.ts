/** When the attempt of a cluster with a slot ends, and when its slot can be released. Pure. */

import { defined } from "#shared/base/defined.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Deciding, FoundLease, Known, SeenSlot } from "#shared/fleet/rollout/facts.ts";
import type { Deadlines, Verdict } from "#shared/fleet/rollout/judge.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { freezeOfAll, freezeText } from "#shared/fleet/rows/freezes-row.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";

export function clockOf({ row }: Pick<Known, "row">, now: Date): Deadlines & { readonly now: Date } {
  const progressSeconds = secondsOf(relationOf(row).rollout.progressDeadline);
  const { suspended, resumed } = row.operations;
  return { now, progressSeconds, pausedAt: suspended?.at, resumedAt: resumed?.at };
}

/**
 * Releases slots of failed attempts, and of clusters that a freeze has held for the time of an attempt, because others
 * may need the slot.
 */
export function pausedFor(
  { slot, syncs, clock, verdict }: Pick<SeenSlot, "slot" | "syncs" | "clock" | "verdict">,
  { known, now, at }: Deciding,
): Paused | undefined {
  if (verdict.state === "Failed") return { reason: verdict.reason, at };
  if (verdict.state === "Assigned" && isOvertaken(slot, known))
    return { reason: "everything of it is to be deleted", at };
  const freeze = clock.freezing?.freeze;
  if (verdict.state !== "Assigned" || freeze === undefined || stuckAt(slot, syncs, clock) > at) return undefined;
  const isForNobody = clock.pausedAt !== undefined || freezeOfAll(known.freezeState, now) !== undefined;
  return isForNobody ? undefined : { reason: freezeText(freeze), at, freeze: freeze.name };
}

/** The whole owner is being deleted: nothing waits for other attempts, which may never end. */
function isOvertaken({ rollout }: SlotRow, { row, rolloutState, rollouts }: Known): boolean {
  return (
    row.operations.deletion !== undefined &&
    rollout !== rolloutState.last &&
    rollouts.get(rolloutState.last)?.plan.deletion !== undefined
  );
}

/** A hold without a deadline is no failure, and is waited for as long as an attempt may take. */
export function stuckAt(
  { since }: SlotRow,
  syncs: readonly SyncRow[],
  { resumedAt, freezing, progressSeconds }: Deadlines,
) {
  const starts = syncs.flatMap(({ desired }) => desired.startAt ?? []);
  const ends = [resumedAt, freezing?.releasedAt, freezing?.freeze?.at].filter((time) => time !== undefined);
  const [last = since] = [since, ...starts, ...ends].sort().reverse();
  return later(last, progressSeconds);
}

/**
 * An attempt of the slot ends without a report of its worker: it was forgotten with its Cluster, left to the cluster,
 * or paused because the slot had no room. The worker may assume for a while that the attempt continues.
 */
export function isCutShort({ slot, syncs, verdict }: Pick<SeenSlot, "slot" | "syncs" | "verdict">): boolean {
  if (verdict.state === "Assigned") return false;
  if (slot.unwritten === true) return true;
  return Object.entries(slot.attempts).some(([name, attempt]) => {
    const desired = syncs.find((sync) => sync.name === name)?.desired;
    return desired?.attempt !== attempt || desired.action === "orphan";
  });
}

export function isLive(lease: FoundLease, now: Date): boolean {
  return isNewer(lease) || (lease.leaseUntil ?? "") > now.toISOString();
}

/** The end of a lease is not reported. */
export function endOf(lease: FoundLease | undefined, now: Date): Pick<Verdict, "deadline"> | undefined {
  const isKnown = lease !== undefined && !isNewer(lease) && isLive(lease, now);
  return isKnown ? defined({ deadline: lease.leaseUntil }) : undefined;
}

export function isHandedBack(fence: number, lease: FoundLease | undefined, now: Date): boolean {
  return lease === undefined || !isLive(lease, now) || (!isNewer(lease) && lease.fence > fence);
}
