/** Problems of cron expressions and of time zones, in the words of people who write Windows. */
import { counted } from "#shared/base/counted.ts";
import { nearestName } from "#shared/base/nearest-name.ts";

interface CronField {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  /** Names of the numbers from the first one on. */
  readonly names?: readonly string[];
}

const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const cronFields: readonly CronField[] = [
  { name: "minute", first: 0, last: 59 },
  { name: "hour", first: 0, last: 23 },
  { name: "day", first: 1, last: 31 },
  { name: "month", first: 1, last: 12, names: months },
  // Sunday is 0 and 7.
  { name: "weekday", first: 0, last: 7, names: weekdays },
];
/** In a leap year. */
const daysOfMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Five fields: minute, hour, day, month and weekday, with numbers, names, lists, ranges and steps. */
export function cronProblem(text: string): string | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== cronFields.length)
    return 'must have five fields (minute, hour, day, month, weekday), such as "0 9 * * 1-5"';
  for (const [index, field] of cronFields.entries())
    for (const part of (fields[index] ?? "").split(",")) {
      const problem = partProblem(field, part);
      if (problem !== undefined) return problem;
    }
  return neverProblem(fields);
}

/** A value or `*`, the end of a range, and a step. */
const partOf = /^(\*|[^-/*]+)(?:-([^-/*]+))?(?:\/(\d+))?$/;

function partProblem(field: CronField, part: string): string | undefined {
  const { name, first, last } = field;
  const [, from, to, step] = partOf.exec(part) ?? [];
  if (from === undefined || (from === "*" && to !== undefined))
    return `has the ${name} "${part}"; write *, ${first}, a range such as ${first}-${last}, a step such as */2, or a list of these`;
  const ends = [from, to].flatMap((word) => (word === undefined || word === "*" ? [] : [word]));
  const unknown = ends.find((word) => numberOf(field, word) === undefined);
  if (unknown !== undefined) return `has the ${name} ${unknown}; expected ${bounds(field)}`;
  const [start = first, end] = ends.map((word) => numberOf(field, word) ?? first);
  // A week may end on a Sunday, by its name.
  if (end !== undefined && end < start && !(to?.toUpperCase() === "SUN"))
    return `has the ${name}s ${part}, which end before they begin; write ${start}-${last},${first}-${end}`;
  if (step === undefined) return undefined;
  if (from !== "*" && to === undefined)
    return `has the ${name} ${part}: a step needs a range; write ${from}-${last}/${step}`;
  if (Number(step) < 1 || Number(step) > last)
    return `has the step ${step} in ${part}; steps of ${name}s are 1 to ${last}`;
  return undefined;
}

function numberOf({ first, last, names = [] }: CronField, word: string): number | undefined {
  const place = names.indexOf(word.toUpperCase());
  if (place >= 0) return first + place;
  const number = /^\d+$/.test(word) ? Number(word) : -1;
  return number >= first && number <= last ? number : undefined;
}

function bounds({ first, last, names }: CronField): string {
  return `${first} to ${last}${names === undefined ? "" : `, or ${names[0]} to ${names.at(-1)}`}`;
}

/** A day that none of the months has. With a weekday, that is enough. */
function neverProblem([, , day = "", month = "", weekday]: readonly string[]): string | undefined {
  if (weekday !== "*") return undefined;
  const [, , days, monthsOfYear] = cronFields as [CronField, CronField, CronField, CronField];
  const most = Math.max(...valuesOf(monthsOfYear, month).map((value) => daysOfMonths[value - 1] ?? 0));
  if (valuesOf(days, day).some((value) => value <= most)) return undefined;
  return `never comes: month ${month} has no day ${day}, but ${counted(most, "day")}; choose another day or month`;
}

/** The numbers that a field without problems stands for. */
function valuesOf(field: CronField, text: string): readonly number[] {
  return text.split(",").flatMap((part) => {
    const [, from = "*", to, step = "1"] = partOf.exec(part) ?? [];
    const start = numberOf(field, from) ?? field.first;
    const end = from === "*" ? field.last : (numberOf(field, to ?? from) ?? field.last);
    return Array.from({ length: end - start + 1 }, (_, index) => start + index).filter(
      (value) => (value - start) % Number(step) === 0,
    );
  });
}

export function timeZoneProblem(text: string): string | undefined {
  // Offsets such as +02:00 know no summer time.
  if (/^[A-Za-z]/.test(text) && !isAbbreviation(text) && isKnownZone(text)) return undefined;
  const abbreviated = isAbbreviation(text) ? ", because several zones have the same abbreviation" : "";
  const meant = zoneMeant(text);
  return `must be a time zone such as Europe/London or UTC${abbreviated}${meant === undefined ? "" : `: write ${meant}`}`;
}

/** BST is the summer time of London for people, and the time of Dhaka for programs. */
function isAbbreviation(text: string): boolean {
  return /^[A-Za-z]{3}$/.test(text) && !["UTC", "GMT"].includes(text.toUpperCase());
}

function isKnownZone(text: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/** The zone of a city, or with a similar name. */
function zoneMeant(text: string): string | undefined {
  const zones = Intl.supportedValuesOf("timeZone");
  const city = text.toLowerCase().replaceAll(/\s+/g, "_");
  const ofCity = zones.find((zone) => zone.toLowerCase().endsWith(`/${city}`));
  return ofCity ?? (/\/./.test(text) ? nearestName(text, zones) : undefined);
}
