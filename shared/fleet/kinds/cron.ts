/** Turns of cron expressions in a time zone. The library computes them; its expressions beyond cron are refused. */
import { Cron } from "croner";

const oneValue = /^(?:\*|(?:\d+|[a-z]{3})(?:-(?:\d+|[a-z]{3}))?)(?:\/\d+)?$/i;
const fieldCount = 5;

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

/** Five fields: minute, hour, day, month and weekday, with numbers, names, lists, ranges and steps. */
export function isCron(text: string): boolean {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== fieldCount || !fields.every((field) => field.split(",").every((one) => oneValue.test(one))))
    return false;
  try {
    return parse(text, "UTC") !== undefined;
  } catch {
    return false;
  }
}

export function isTimeZone(text: string): boolean {
  // Offsets such as +02:00 know no summer time.
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
