/** The errors of schedules and time zones, in the words of the parser that Kubernetes uses (robfig/cron v3). */

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const bounds: readonly Bounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: weekdays },
];
const descriptors = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

export function scheduleProblem(schedule: string): string | undefined {
  const zoned = /^(?:CRON_)?TZ=(\S*)\s(.*)$/s.exec(schedule);
  const zone = zoned?.[1] ?? "";
  if (zone !== "" && !isTimeZone(zone)) return `provided bad location ${zone}: unknown time zone ${zone}`;
  const text = zoned === null ? schedule : (zoned[2] ?? "").trim();
  if (text.startsWith("@")) return descriptorProblem(text);
  const fields = text.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== bounds.length) {
    return `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`;
  }
  for (const [index, limits] of bounds.entries()) {
    for (const range of (fields[index] ?? "").split(",")) {
      const problem = range === "" ? undefined : rangeProblem(range, limits);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function descriptorProblem(text: string): string | undefined {
  if (descriptors.includes(text)) return undefined;
  const [, every] = /^@every (.*)$/s.exec(text) ?? [];
  if (every === undefined) return `unrecognized descriptor: ${text}`;
  const problem = durationProblem(every);
  return problem === undefined ? undefined : `failed to parse duration ${text}: time: ${problem}`;
}

/** As time.ParseDuration reports them. */
function durationProblem(text: string): string | undefined {
  const quoted = JSON.stringify(text);
  let rest = text.replace(/^[-+]/, "");
  if (rest === "0") return undefined;
  if (rest === "") return `invalid duration ${quoted}`;
  while (rest !== "") {
    const [part = "", , unit = ""] = /^(\d+\.?\d*|\.\d+)([^\d.]*)/.exec(rest) ?? [];
    if (part === "") return `invalid duration ${quoted}`;
    if (unit === "") return `missing unit in duration ${quoted}`;
    if (!["ns", "us", "µs", "μs", "ms", "s", "m", "h"].includes(unit))
      return `unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
    rest = rest.slice(part.length);
  }
  return undefined;
}

function rangeProblem(range: string, { min, max, names }: Bounds): string | undefined {
  const [span = "", stepText, ...moreSlashes] = range.split("/");
  const [low = "", high, ...moreHyphens] = span.split("-");
  const any = low === "*" || low === "?";
  const start = any ? min : numberOf(low, names, min);
  if (typeof start === "string") return start;
  const last = high === undefined || any ? start : numberOf(high, names, min);
  if (!any && moreHyphens.length > 0) return `too many hyphens: ${range}`;
  if (typeof last === "string") return last;
  if (moreSlashes.length > 0) return `too many slashes: ${range}`;
  const step = stepText === undefined ? 1 : numberOf(stepText, [], 0);
  if (typeof step === "string") return step;
  const end = any || (stepText !== undefined && high === undefined) ? max : last;
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${range}`;
  if (end > max) return `end of range (${end}) above maximum (${max}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return step === 0 ? `step of range should be a positive number: ${range}` : undefined;
}

/** @returns the error text where the text is neither a number nor a name. */
function numberOf(text: string, names: readonly string[], first: number): number | string {
  const named = names.indexOf(text.toLowerCase());
  if (named >= 0) return named + first;
  const wrong = (why: string) =>
    `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: ${why}`;
  if (!/^[-+]?\d+$/.test(text)) return wrong("invalid syntax");
  const digits = text.replace(/^[-+]?0*/, "");
  // Some numbers of 19 digits fit into 64 bits, and no number of 20 digits does.
  if (digits.length > 19) return wrong("value out of range");
  const value = BigInt(text.startsWith("-") ? `-${digits || "0"}` : digits || "0");
  if (value !== BigInt.asIntN(64, value)) return wrong("value out of range");
  return value < 0n ? `negative number (${value}) not allowed: ${text}` : Number(value);
}

/** The errors of `spec.timeZone`. */
export function timeZoneProblems(zone: string): string[] {
  if (zone === "") return ["timeZone must be nil or non-empty string"];
  const explicit = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  return [
    ...(zone.toLowerCase() === "local" ? [explicit] : []),
    ...(isTimeZone(zone) ? [] : [`unknown time zone ${zone}`]),
  ];
}

/** Whether the IANA database has a zone. Go looks zones up as files, so upper and lower case matter. */
function isTimeZone(zone: string): boolean {
  if (zone === "UTC" || zone === "Local") return true;
  if (!/^[A-Z]/.test(zone)) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions();
    return timeZone === zone || timeZone.toLowerCase() !== zone.toLowerCase();
  } catch {
    return false;
  }
}
