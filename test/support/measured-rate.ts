const highest = 15;
const lowest = 2;
/** Slow enough for any machine to keep up. */
const trialRate = 4;
/** Seconds that the trial may take where the highest rate is safe. */
const idleSeconds = 5;

/**
 * Plays something once at a low rate, and says at which rate this machine can play it as it is now: timeouts are of the
 * functions' clock, and where processors are busy otherwise they would run out before anything is done.
 */
export async function measuredRate<T>(
  play: (rate: number) => Promise<T>,
): Promise<{ readonly rate: number; readonly played: T }> {
  const startedAt = performance.now();
  const played = await play(trialRate);
  const seconds = (performance.now() - startedAt) / 1000;
  const rate = Math.max(lowest, Math.min(highest, Math.floor((highest * idleSeconds) / seconds)));
  return { rate, played };
}
