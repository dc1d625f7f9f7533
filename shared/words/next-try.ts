import type { Observed } from "#shared/fleet/rows/sync-row.ts";
import { formatSeconds, formatTime } from "#shared/words/age.ts";

/** `in 40s, at 08:01:40Z`, for a Sync in Retrying; undefined for any other. */
export function nextTryText(observed: Pick<Observed, "phase" | "nextAt"> | undefined, now: Date): string | undefined {
  if (observed?.phase !== "Retrying" || observed.nextAt === undefined) return undefined;
  const { nextAt } = observed;
  const seconds = Math.ceil((Date.parse(nextAt) - now.getTime()) / 1000);
  const at = formatTime(nextAt, now);
  return seconds > 0 ? `in ${formatSeconds(seconds)}, at ${at}` : `due since ${at}`;
}
