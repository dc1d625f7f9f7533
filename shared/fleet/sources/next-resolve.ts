import { toRenewAt } from "#shared/fleet/blob-life.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { backoffSeconds, hashOf, later, nextSharedTime } from "#shared/fleet/rows/due.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { sharedUpstream } from "#shared/fleet/sources/shared-upstream.ts";
import { fetchAgainAt } from "#shared/fleet/sources/source-fetch.ts";

type Timed = Pick<SourceRow, "namespace" | "spec" | "status" | "operations" | "generation" | "createdAt" | "uid">;

/**
 * When a Source is resolved next; while it is suspended, when that ends or its artifact is stored once more. A changed
 * spec, a `reconcile` and a new Source are due at once. Sources of one upstream have their turns together. Failures back
 * off, up to the interval. A fetch that died is due when it may be tried again, if that is earlier, and so are events that
 * were not sent.
 */
export function nextResolve(row: Timed): string | undefined {
  const { pending = [], againAt } = row.status.events ?? {};
  return [nextPoll(row), pending.length === 0 ? undefined : againAt].filter((at) => at !== undefined).sort()[0];
}

function nextPoll(row: Timed): string | undefined {
  const { status } = row;
  const { suspended } = row.operations;
  if (suspended !== undefined) return [nextRenewal(row), suspended.until].filter((at) => at !== undefined).sort()[0];
  if (status.attemptedAt === undefined) return row.createdAt;
  if (status.observedGeneration !== row.generation) return row.createdAt;
  const asked = row.operations.reconcile;
  // Rows from before acts had numbers have an act without one.
  if (asked?.number !== undefined && asked.number !== status.handledReconcile) return asked.at;
  const interval = secondsOf(row.spec.interval);
  const failures = status.failures ?? 0;
  const polled =
    failures > 0
      ? later(status.attemptedAt, Math.min(backoffSeconds(failures), interval))
      : nextSharedTime(status.attemptedAt, interval, sharedUpstream(row) ?? row.uid);
  const listed = afterLimit(polled, row);
  const fetched = status.fetch === undefined ? listed : fetchAgainAt(status.fetch);
  // The expected fetch did not happen, for another reason.
  return status.attemptedAt < fetched && fetched < listed ? fetched : listed;
}

/** The Sources of a host are spread over their interval after its limit, so that they do not meet it again at once. */
function afterLimit(at: string, { spec, status, uid }: Pick<SourceRow, "spec" | "status" | "uid">): string {
  const { limitedUntil } = status;
  if (limitedUntil === undefined) return at;
  const share = (hashOf(uid) % 1000) / 1000;
  const asked = later(limitedUntil, share * secondsOf(spec.interval));
  return asked > at ? asked : at;
}

function nextRenewal({ status: { artifact, lost } }: Pick<SourceRow, "status">): string | undefined {
  return artifact === undefined || artifact.digest === lost ? undefined : toRenewAt(artifact.storedAt);
}
