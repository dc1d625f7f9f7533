/**
 * Fetches that begin and never end: a function that runs out of memory or time cannot report that. Each fetch is
 * recorded before it begins. A record whose function must have ended shows how often the fetch was tried.
 */
import { defined } from "#shared/base/defined.ts";
import { backoffSecondsAfter, later } from "#shared/fleet/rows/due.ts";
import type { AskedRevision, FetchStart, SourceRow } from "#shared/fleet/rows/object-rows.ts";

/** Number of immediate tries: a sandbox may also be taken away, which tells nothing about the commit. */
const startsAtOnce = 3;
/** Why a Source is not ready while the fetches of its commit never end. */
export const interrupted = "GitFetchInterrupted";
/** Possible difference between the clocks of two functions. */
const skewSeconds = 5;

export interface Fetcher {
  /** Id of the invocation. */
  readonly id: string;
  readonly now: Date;
  /** Time until the invocation is killed. */
  readonly secondsLeft: number;
}

export type FetchDecision =
  | { readonly kind: "start"; readonly start: FetchStart; readonly died: FetchStart | undefined }
  /** It died too often to be tried again just now. */
  | { readonly kind: "rest"; readonly died: FetchStart };

type Asked = Pick<SourceRow, "generation" | "operations">;
type Fetching = Asked & Pick<SourceRow, "status">;

export function askedRevision({ generation, operations }: Asked, revision: string): AskedRevision {
  const asked = operations.reconcile?.number;
  return { revision, generation, ...defined({ asked }) };
}

export function isSameQuestion(a: AskedRevision, b: AskedRevision): boolean {
  return a.revision === b.revision && a.generation === b.generation && a.asked === b.asked;
}

/**
 * Whether another invocation fetches for this Source: one fetch at a time, whatever moved meanwhile. A request of
 * people, by another spec or a `reconcile`, does not wait: the running fetch may hang because of what they corrected.
 */
export function isFetchedByAnother({ generation, operations, status }: Fetching, { id, now }: Fetcher): boolean {
  const { fetch } = status;
  if (fetch === undefined || fetch.id === id || fetch.until <= now.toISOString()) return false;
  return fetch.generation === generation && fetch.asked === operations.reconcile?.number;
}

/** Decides about a revision that has to be fetched, by the recorded starts. */
export function decideFetch(row: Fetching, revision: string, fetcher: Fetcher): FetchDecision {
  const { id, now, secondsLeft } = fetcher;
  const asked = askedRevision(row, revision);
  const known = row.status.fetch;
  const mine = known?.id === id;
  const isOver = known !== undefined && !mine && known.until <= now.toISOString();
  const again = known !== undefined && isSameQuestion(known, asked) ? known : undefined;
  if (again !== undefined && !mine && now.toISOString() < fetchAgainAt(again)) return { kind: "rest", died: again };
  const before = again?.starts ?? 0;
  const start = {
    ...asked,
    id,
    startedAt: now.toISOString(),
    until: later(now, secondsLeft + skewSeconds),
    starts: mine ? Math.max(before, 1) : before + 1,
  };
  return { kind: "start", start, died: isOver ? known : undefined };
}

/** When a fetch that never ended begins again. */
export function fetchAgainAt({ until, starts }: FetchStart): string {
  return starts < startsAtOnce ? until : later(until, backoffSecondsAfter(starts - startsAtOnce + 1));
}

const causes = "out of memory, out of time, or its sandbox was taken away";

export function diedMessage({ revision, startedAt }: FetchStart): string {
  return `the fetch of ${revision} that began at ${startedAt} never ended (${causes}); it is tried again`;
}

export function restMessage(died: FetchStart): string {
  const { revision, starts, startedAt } = died;
  return (
    `${starts} fetches of ${revision} never ended, the last one of ${startedAt} (${causes}); it is tried again at ${fetchAgainAt(died)}. ` +
    "If that continues, the commit is too large for Starling: remove large files from it (older commits do not count) " +
    "or move what is deployed to a repository of its own. Another commit, or `starling reconcile`, is tried at once"
  );
}
