import type { Calendar } from "#shared/fleet/windows/calendar.ts";

/** `2026-06-30T09:00+01:00 Europe/London, 2026-06-30T08:00Z`: the time by the clock of each zone, and in UTC. */
export function openingText({ allow, deny }: Calendar, at: Date): string {
  const zones = new Set([...allow, ...deny].flatMap(({ timeZone }) => timeZone ?? []));
  const others = [...zones].filter((zone) => zone !== "UTC").map((zone) => zonedText(at, zone));
  return [...others, `${at.toISOString().slice(0, minuteLength)}Z`].join(", ");
}

const minuteLength = "2026-11-30T09:00".length;

function zonedText(at: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hourCycle: "h23",
    timeZoneName: "longOffset",
    ...{ year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" },
  });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, timeZoneName = "" } = parts;
  const offset = timeZoneName === "GMT" ? "+00:00" : timeZoneName.replace("GMT", "");
  return `${year}-${month}-${day}T${hour}:${minute}${offset} ${timeZone}`;
}
