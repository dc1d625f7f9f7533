/** The seconds of one operation: those of its own limit, or those that the caller has left, if they are fewer. */
export function secondsLeft(timeoutSeconds: number, timeLeftMs: (() => number) | undefined): number {
  const left = timeLeftMs === undefined ? Number.POSITIVE_INFINITY : Math.max(timeLeftMs() / 1000, 0);
  return Math.min(timeoutSeconds, left);
}
