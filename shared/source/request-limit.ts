/** The limits of requests that hosts of Sources state in their answers. */

interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Hosts that state no time get this one. */
const defaultSeconds = 60;
const shortestSeconds = 1;
/** GitHub counts by the hour. A host that states more is asked again then. */
const longestSeconds = 3600;
/** Larger numbers are times since 1970, in seconds, and no waits. */
const longestWait = 1_000_000_000;

/**
 * Until when a host wants no further request, undefined when it does not say so: 429; 403 of GitHub and GitLab when their
 * headers say that nothing remains; 403 and 503 with `Retry-After` (RFC 9110, 10.2.3).
 */
export function limitedUntil({ status, headers }: Answer, now: Date): Date | undefined {
  const remaining = headers["x-ratelimit-remaining"] ?? headers["ratelimit-remaining"];
  const retryAfter = headers["retry-after"];
  const isLimited =
    status === 429 ||
    (status === 403 && (remaining === "0" || retryAfter !== undefined)) ||
    (status === 503 && retryAfter !== undefined);
  if (!isLimited) return undefined;
  const reset = headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"];
  const seconds = secondsIn(retryAfter, now) ?? secondsIn(reset, now) ?? defaultSeconds;
  return new Date(now.getTime() + Math.min(Math.max(seconds, shortestSeconds), longestSeconds) * 1000);
}

/** A number of seconds, a time since 1970, or a date. */
function secondsIn(text: string | undefined, now: Date): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const number = Number(text);
  if (Number.isFinite(number)) return number < longestWait ? number : number - now.getTime() / 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : (date - now.getTime()) / 1000;
}
