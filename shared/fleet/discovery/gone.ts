/** Clusters that their own account reports as missing, and which of them are forgotten: pure. */
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { resolveCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import type { FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

type Spec = Pick<ClusterDiscoverySpec, "gone" | "interval">;

/** Period of the limit on forgetting. */
const daySeconds = 86_400;
const leastGapSeconds = 3600;

/** Longest gap between two answers that count as uninterrupted: scans are late, and an account may not answer. */
function gapSeconds({ interval }: Spec): number {
  return Math.max(3 * secondsOf(interval), leastGapSeconds);
}

/** Whether the account has to be asked again, so that its answers have no gap. */
export function isToBeConfirmed({ goneSince, describedAt }: FoundRow, spec: Spec, now: Date): boolean {
  if (goneSince === undefined || spec.gone === undefined) return false;
  return later(describedAt, gapSeconds(spec) / 3) <= now.toISOString();
}

/** Since when the account reports the cluster as missing; a gap begins it again. */
export function goneSince({ goneSince: since, describedAt }: FoundRow, spec: Spec, now: Date): string {
  const at = now.toISOString();
  if (since === undefined) return at;
  return spec.gone !== undefined && later(describedAt, gapSeconds(spec)) < at ? at : since;
}

/** When the cluster last answered Starling, as far as that was recorded. */
export function answeredAt(cluster: ClusterRow | undefined, syncs: readonly SyncRow[] = []): string | undefined {
  const scans = syncs.flatMap(({ observed }) => (observed?.phase === "Ready" ? [observed.at] : []));
  const seen = cluster?.status.lastSeenAt;
  return [...scans, ...(seen === undefined ? [] : [seen])].sort().at(-1);
}

/** Gone for as long as the ClusterDiscovery requires. */
export function isOverdue({ goneSince: since, forgotten }: FoundRow, { gone }: Spec, now: Date): boolean {
  if (gone === undefined || since === undefined || forgotten !== undefined) return false;
  return later(since, secondsOf(gone.after)) <= now.toISOString();
}

export interface Forgetting {
  /** The number of clusters that may be forgotten within a day, and the total. */
  readonly bound: number;
  readonly of: number;
  /** Clusters to forget, the longest gone first. */
  readonly now: readonly FoundRow[];
  /** Clusters that have to wait because of the limit. */
  readonly waiting: readonly FoundRow[];
}

/**
 * @param own - everything that the ClusterDiscovery has found, with what it forgot within the last day.
 * @param overdue - those of them that this scan confirmed as missing.
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

/** Includes clusters that exist again. */
export function isForgottenToday({ forgotten, forgottenAt }: FoundRow, now: Date): boolean {
  const at = forgotten?.at ?? forgottenAt;
  return at !== undefined && later(at, daySeconds) > now.toISOString();
}
