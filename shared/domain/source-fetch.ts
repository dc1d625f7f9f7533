/**
 * Fetches that begin and never end: a function that runs out of memory or time cannot say so itself. Each fetch is
 * written down before it begins; whoever finds one that nobody can be at any more knows how often it was tried.
 */
import { later } from "#shared/domain/rows/due.ts";
import type { AskedRevision, FetchStart, SourceRow } from "#shared/domain/rows/object-rows.ts";

/** Starts of one fetch. A function may die once without its fault, as when a sandbox is taken away. */
const MAX_STARTS = 3;
/** What clocks of two functions differ by. */
const SKEW_SECONDS = 5;

export interface Fetcher {
  /** Of the invocation. */
  readonly id: string;
  readonly now: Date;
  /** Until it is killed. */
  readonly secondsLeft: number;
}

export type FetchDecision =
  | { readonly kind: "start"; readonly start: FetchStart; readonly died: FetchStart | undefined }
  /** Somebody else fetches just that. */
  | { readonly kind: "leave" }
  | { readonly kind: "give up"; readonly died: FetchStart };

type Asked = Pick<SourceRow, "generation" | "operations">;

export function askedRevision({ generation, operations }: Asked, revision: string): AskedRevision {
  const asked = operations.reconcile?.number;
  return { revision, generation, ...(asked === undefined ? {} : { asked }) };
}

export function isSameQuestion(a: AskedRevision, b: AskedRevision): boolean {
  return a.revision === b.revision && a.generation === b.generation && a.asked === b.asked;
}

/** What to do about a revision that has to be fetched, by what the row knows of earlier starts. */
export function decideFetch(row: Asked & Pick<SourceRow, "status">, revision: string, fetcher: Fetcher): FetchDecision {
  const { id, now, secondsLeft } = fetcher;
  const asked = askedRevision(row, revision);
  const known = row.status.fetch;
  const mine = known?.id === id;
  const isOver = known !== undefined && !mine && known.until <= now.toISOString();
  const again = known !== undefined && isSameQuestion(known, asked) ? known : undefined;
  if (again !== undefined && !mine && !isOver) return { kind: "leave" };
  if (again !== undefined && isOver && again.starts >= MAX_STARTS) return { kind: "give up", died: again };
  const before = again?.starts ?? 0;
  const start = {
    ...asked,
    id,
    startedAt: now.toISOString(),
    until: later(now, secondsLeft + SKEW_SECONDS),
    starts: mine ? Math.max(before, 1) : before + 1,
  };
  return { kind: "start", start, died: isOver ? known : undefined };
}

const causes = "out of memory, out of time, or its sandbox was taken away";

export function diedMessage({ revision, startedAt, starts }: FetchStart): string {
  return `the fetch of ${revision} that began at ${startedAt} never ended (${causes}); it is tried again, ${starts} of ${MAX_STARTS} tries are over`;
}

export function gaveUpMessage({ revision, starts, startedAt }: FetchStart): string {
  return (
    `${starts} fetches of ${revision} never ended, the last one of ${startedAt} (${causes}): it is more than Starling can take. ` +
    "Remove large files from the commit (older commits do not count) or move what is deployed to a repository of its own; " +
    "it is looked at again when the reference moves, or by `starling reconcile`"
  );
}
