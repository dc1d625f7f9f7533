const highest = 15;
/** Slow enough for every machine. */
const lowest = 4;
/** The duration of a trial in seconds at which the highest rate is safe. */
const idleSeconds = 5;
/** A longer trial may have waited for a redelivered message, and is no measure of the machine. */
const doubtfulSeconds = 2 * idleSeconds;
const mostTrials = 3;

/**
 * Plays something at a low rate, then returns the rate that this machine can sustain now. At a higher rate, times that
 * the machine needs would exceed times of the functions, such as the visibility of messages.
 */
export async function measuredRate<T>(
  play: (rate: number) => Promise<T>,
): Promise<{ readonly rate: number; readonly played: T }> {
  let quickest = Number.POSITIVE_INFINITY;
  for (let trial = 1; ; trial++) {
    const startedAt = performance.now();
    const played = await play(lowest);
    quickest = Math.min(quickest, (performance.now() - startedAt) / 1000);
    if (quickest > doubtfulSeconds && trial < mostTrials) continue;
    const rate = Math.max(lowest, Math.min(highest, Math.floor((highest * idleSeconds) / quickest)));
    return { rate, played };
  }
}
