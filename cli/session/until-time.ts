import { usageFailure } from "#cli/session/failure.ts";
import { isRealDay } from "#shared/base/is-real-day.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";

/** Reads the value of `--until`: a time, or a duration from now. @returns the time in UTC. */
export function untilTime(text: string, now: Date): string {
  const seconds = durationSeconds(text);
  if (seconds !== undefined) return later(now, seconds);
  const time = Date.parse(text);
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(time) && isRealDay(text)) return new Date(time).toISOString();
  throw usageFailure(
    `--until is "${text}"; expected a time or a duration`,
    "--until 2026-11-22T18:00:00Z, or --until 2h",
  );
}
