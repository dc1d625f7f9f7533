/** The age in kubectl's steps: `14s`, `5m10s`, `42m`, `3h12m`, `26h`, `2d4h`, `12d`; `-` for never. */
export function formatAge(since: string | undefined, now: Date): string {
  if (since === undefined) return "-";
  const seconds = Math.max(0, Math.floor((now.getTime() - new Date(since).getTime()) / 1000));
  return formatSeconds(seconds);
}

/** A duration in the same steps. */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return withRest(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return withRest(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return days < 8 ? withRest(days, "d", hours % 24, "h") : `${days}d`;
}

function withRest(value: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${value}${unit}` : `${value}${unit}${rest}${restUnit}`;
}

/** `08:36:02Z`, with the date if it is another day. */
export function formatTime(at: string, now: Date): string {
  const time = `${at.slice(11, 19)}Z`;
  return at.slice(0, 10) === now.toISOString().slice(0, 10) ? time : `${at.slice(0, 10)} ${time}`;
}
