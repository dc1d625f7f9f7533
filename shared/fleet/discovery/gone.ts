/** Clusters that their own account says it does not have, and which of them are forgotten: pure. */
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { resolveCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

type Spec = Pick<ClusterDiscoverySpec, "gone" | "interval">;

/** The bound of forgetting is for so long. */
const daySeconds = 86_400;
const leastGapSeconds = 3600;

/** Between two answers that count as one: looks are late, and one or the other account does not answer. */
function gapSeconds({ interval }: Spec): number {
  return Math.max(3 * secondsOf(interval), leastGapSeconds);
}

/** Its account is to be asked again, so that there is no gap in what it says. */
export function isToBeConfirmed({ goneSince, describedAt }: FoundRow, spec: Spec, now: Date): boolean {
  if (goneSince === undefined || spec.gone === undefined) return false;
  return later(describedAt, gapSeconds(spec) / 3) <= now.toISOString();
}

/** Since when its account says that there is none, now that it says so again: a gap begins it anew. */
export function goneSince({ goneSince: since, describedAt }: FoundRow, spec: Spec, now: Date): string {
  const at = now.toISOString();
  if (since === undefined) return at;
  return spec.gone !== undefined && later(describedAt, gapSeconds(spec)) < at ? at : since;
}

/** When the cluster answered Starling last, as far as it was noted. */
export function answeredAt(cluster: ClusterRow | undefined, syncs: readonly SyncRow[] = []): string | undefined {
  const scans = syncs.flatMap(({ observed }) => (observed?.phase === "Ready" ? [observed.at] : []));
  const seen = cluster?.status.lastSeenAt;
  return [...scans, ...(seen === undefined ? [] : [seen])].sort().at(-1);
}

/** Gone for as long as the ClusterDiscovery wants it. */
export function isOverdue({ goneSince: since, forgotten }: FoundRow, { gone }: Spec, now: Date): boolean {
  if (gone === undefined || since === undefined || forgotten !== undefined) return false;
  return later(since, secondsOf(gone.after)) <= now.toISOString();
}

export interface Forgetting {
  /** How many may be forgotten within a day, of how many. */
  readonly bound: number;
  readonly of: number;
  /** Those that are, the longest gone first. */
  readonly now: readonly FoundRow[];
  /** Those that have to wait because of the bound. */
  readonly waiting: readonly FoundRow[];
}

/**
 * @param own - what the ClusterDiscovery has found, with what it forgot within the last day.
 * @param overdue - those of them of which this look had the answer that they are gone.
 */
export function planForgetting(
  own: readonly FoundRow[],
  overdue: readonly FoundRow[],
  { spec, now }: { readonly spec: Spec; readonly now: Date },
): Forgetting {
  const { maxPerDay = 0 } = spec.gone ?? {};
  const forgotten = own.filter((row) => isForgottenToday(row, now)).length;
  const of = own.filter((row) => row.forgotten === undefined || isForgottenToday(row, now)).length;
  const bound = resolveCount(maxPerDay, of, "up");
  const room = Math.max(0, bound - forgotten);
  const order = [...overdue].sort((a, b) => (`${a.goneSince} ${a.arn}` < `${b.goneSince} ${b.arn}` ? -1 : 1));
  return { bound, of, now: order.slice(0, room), waiting: order.slice(room) };
}

/** Also one that is there again. */
export function isForgottenToday({ forgotten, forgottenAt }: FoundRow, now: Date): boolean {
  const at = forgotten?.at ?? forgottenAt;
  return at !== undefined && later(at, daySeconds) > now.toISOString();
}
