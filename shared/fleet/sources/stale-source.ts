/** Sources whose upstream may have something newer. */
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";

/** Seconds after which an unresolved Source counts, because hosts are down for a while now and then. */
export const staleAfterSeconds = 3600;

/** Whether nobody polled for an hour longer than the interval. @param polledAt - when somebody did, or could have begun to. */
export function isPollLate(polledAt: string, { interval }: Pick<SourceRow["spec"], "interval">, now: Date): boolean {
  return later(polledAt, secondsOf(interval) + staleAfterSeconds) <= now.toISOString();
}

/** Since when the upstream may have something newer than the artifact; undefined while polls succeed in time. */
export function staleSince(
  { spec, status, operations }: Pick<SourceRow, "spec" | "status"> & Partial<Pick<SourceRow, "operations">>,
  now: Date,
): string | undefined {
  const { artifact, attemptedAt } = status;
  if (status.staleSince !== undefined || artifact === undefined || attemptedAt === undefined) return status.staleSince;
  return operations?.suspended === undefined && isPollLate(attemptedAt, spec, now) ? attemptedAt : undefined;
}
