/** Turns of cron expressions in a time zone. The library computes them; `cronProblem` refuses its expressions beyond cron. */
import { Cron } from "croner";

/** Parsing costs more than asking; the same few expressions are asked about for each cluster. */
const parsed = new Map<string, Cron>();
const mostParsed = 500;

function parse(cron: string, timeZone: string): Cron {
  const key = `${timeZone} ${cron}`;
  const known = parsed.get(key);
  if (known !== undefined) return known;
  if (parsed.size >= mostParsed) parsed.clear();
  const made = new Cron(cron, { timezone: timeZone, mode: "5-part" });
  parsed.set(key, made);
  return made;
}

/** The expressions that never come are few, and finding that out takes long. */
const endless = new Set<string>();

/**
 * The first turn after a time, in milliseconds since 1970; undefined when there is none. A turn in an hour that the zone
 * skips comes when that hour would have ended; one in an hour that the zone repeats comes once, in the first.
 */
export function nextTurn(cron: string, timeZone: string, after: number): number | undefined {
  const key = `${timeZone} ${cron}`;
  if (endless.has(key)) return undefined;
  const next = parse(cron, timeZone).nextRun(new Date(after))?.getTime();
  if (next === undefined && endless.size < mostParsed) endless.add(key);
  return next;
}
