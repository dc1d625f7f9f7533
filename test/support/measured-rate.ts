const highest = 15;
/** Slow enough for any machine to keep up. */
const lowest = 4;
/** Seconds that a trial may take where the highest rate is safe. */
const idleSeconds = 5;
/** A trial that takes longer may have waited for a message that came again, which says nothing of the machine. */
const doubtfulSeconds = 2 * idleSeconds;
const mostTrials = 3;

/**
 * Plays something at a low rate, and says at which rate this machine can play it as it is now: what takes the machine's
 * time and not the functions', as the visibility of messages, would otherwise run out before anything is done.
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
