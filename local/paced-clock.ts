import type { Clock } from "#shared/ports.ts";

/** A clock that starts at the machine's time and runs `rate` seconds in each of its seconds. */
export interface PacedClock extends Clock {
  readonly rate: number;
}

export function pacedClock(rate: number): PacedClock {
  const startedAt = Date.now();
  const monotonicStart = performance.now();
  return { rate, now: () => new Date(startedAt + Math.round((performance.now() - monotonicStart) * rate)) };
}
