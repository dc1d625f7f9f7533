/**
 * When changes may start: the allowed times, without the denied ones. Several allowed times are a union; without any,
 * every time is allowed. Pure.
 */

import { nextTurn } from "#shared/fleet/kinds/cron.ts";
import { secondsOf } from "#shared/fleet/kinds/quantities.ts";

/** From each turn of a cron expression for a duration, or once from a start to an end. */
export interface WindowTime {
  readonly cron?: string | undefined;
  /** Such as `8h`, in elapsed time: the end of a window on a day of 23 hours is an hour later by the clock. */
  readonly duration?: string | undefined;
  readonly timeZone?: string | undefined;
  /** Texts of ISO 8601, with a zone. */
  readonly start?: string | undefined;
  readonly end?: string | undefined;
}

export interface Calendar {
  readonly allow: readonly WindowTime[];
  readonly deny: readonly WindowTime[];
}

/** Openings further away than this are not looked for. */
const furthestMs = 10 * 366 * 24 * 3600 * 1000;
/** A search that asks for this many turns finds nothing: it would take longer than about a second. */
const mostTurns = 10_000;
/** A search always alternates this often between allowed and denied times, however many there are. */
const leastSteps = 100;

interface Span {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** The first occurrence that ends after a time. */
function spanAt({ cron, duration, timeZone, start, end }: WindowTime, at: number): Span | undefined {
  if (cron !== undefined && duration !== undefined && timeZone !== undefined) {
    const length = secondsOf(duration) * 1000;
    const from = nextTurn(cron, timeZone, at - length);
    return from === undefined ? undefined : { from, to: from + length };
  }
  const span = { from: Date.parse(start ?? ""), to: Date.parse(end ?? "") };
  return span.to > at ? span : undefined;
}

/** The ends of the present occurrences; later ones may have begun by then. */
function endsOf(times: readonly WindowTime[], at: number): readonly number[] {
  return times.flatMap((time) => {
    const span = spanAt(time, at);
    return span === undefined || span.from > at ? [] : [span.to];
  });
}

/** The times after this one at which one of them begins. */
function beginsOf(times: readonly WindowTime[], at: number): readonly number[] {
  return times.flatMap(({ cron, timeZone, start }) => {
    const begin = cron === undefined ? Date.parse(start ?? "") : nextTurn(cron, timeZone ?? "UTC", at);
    return begin === undefined || begin <= at ? [] : [begin];
  });
}

/** Windows over one cluster count together, so that each is told in both parts. */
export function standingOf(
  { allow, deny }: Calendar,
  now: Date,
): { readonly allows: boolean; readonly denies: boolean } {
  const at = now.getTime();
  return { allows: endsOf(allow, at).length > 0, denies: endsOf(deny, at).length > 0 };
}

export function isOpen(calendar: Calendar, now: Date): boolean {
  const { allows, denies } = standingOf(calendar, now);
  return (allows || calendar.allow.length === 0) && !denies;
}

/** From the time of a search until what it found, or for good without anything, its result stays the same. */
interface Search {
  readonly from: Date;
  readonly found: Date | undefined;
}

const mostSearches = 500;

/** The planner asks with every write and assignment, and a search may take a second: results are kept by calendar. */
function remembering(search: (calendar: Calendar, now: Date) => Date | undefined) {
  const searches = new Map<string, Search>();
  return (calendar: Calendar, now: Date): Date | undefined => {
    const key = JSON.stringify(calendar);
    const known = searches.get(key);
    if (known !== undefined && known.from <= now && (known.found === undefined || now <= known.found))
      return known.found;
    if (searches.size >= mostSearches) searches.clear();
    const found = search(calendar, now);
    searches.set(key, { from: now, found });
    return found;
  };
}

/** When it is open next; now, when it is open. @returns undefined when it never opens again. */
export const nextOpening = remembering(searchOpening);

function searchOpening({ allow, deny }: Calendar, now: Date): Date | undefined {
  return walk([...allow, ...deny], now, (at) => {
    // While the longest of the denied times lasts, nothing opens.
    const denied = endsOf(deny, at);
    if (denied.length > 0) return Math.max(...denied);
    return allow.length === 0 || endsOf(allow, at).length > 0 ? "found" : earliest(beginsOf(allow, at));
  });
}

/** When it closes next; now, when it is closed. @returns undefined when it stays open. */
export const nextClosing = remembering(searchClosing);

function searchClosing(calendar: Calendar, now: Date): Date | undefined {
  return walk([...calendar.allow, ...calendar.deny], now, (at) => {
    if (!isOpen(calendar, new Date(at))) return "found";
    const ends = endsOf(calendar.allow, at);
    return earliest([...(ends.length === 0 ? [] : [Math.max(...ends)]), ...beginsOf(calendar.deny, at)]);
  });
}

/** Without a start, a closing is looked for in the last days only; and always over so many openings. */
const closedMs = 8 * 24 * 3600 * 1000;
const mostOpenings = 200;

/**
 * Since when somebody waits for it to open: its last closing, or the start of the wait, whichever is later.
 * @param start - when the wait began, if that is known.
 * @returns undefined while it is open, and when the closing was not found.
 */
export function closedSince(calendar: Calendar, start: string | undefined, now: Date): Date | undefined {
  const first = start === undefined ? now.getTime() - closedMs : Date.parse(start);
  let from = new Date(first);
  for (let turn = 0; turn < mostOpenings; turn++) {
    const closing = searchClosing(calendar, from);
    if (closing === undefined || closing > now) return undefined;
    const opening = searchOpening(calendar, closing);
    if (opening === undefined || opening > now)
      return start === undefined && closing.getTime() === first ? undefined : closing;
    from = opening;
  }
  return undefined;
}

/** @param next - the next time that may be the one, or whether this one is. */
function walk(
  times: readonly WindowTime[],
  now: Date,
  next: (at: number) => number | "found" | undefined,
): Date | undefined {
  const last = now.getTime() + furthestMs;
  const steps = Math.max(leastSteps, mostTurns / times.length);
  let at = now.getTime();
  for (let step = 0; step < steps && at <= last; step++) {
    const other = next(at);
    if (other === "found") return new Date(at);
    if (other === undefined) return undefined;
    at = other;
  }
  return undefined;
}

function earliest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The next times at which it opens, without the one that may have begun. */
export function openings(calendar: Calendar, now: Date, most: number): readonly Date[] {
  const found: Date[] = [];
  let from = isOpen(calendar, now) ? nextClosing(calendar, now) : now;
  while (from !== undefined && found.length < most) {
    const opening = nextOpening(calendar, from);
    if (opening === undefined) break;
    found.push(opening);
    from = nextClosing(calendar, opening);
  }
  return found;
}
