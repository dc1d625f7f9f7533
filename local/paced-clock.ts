import type { Clock } from "#shared/ports.ts";

/** A clock that starts at the machine's time and runs `rate` seconds in each second that this process had for its work. */
export interface PacedClock extends Clock {
  readonly rate: number;
}

const lookEveryMs = 5;
/** The most that counts between two looks: in the rest the machine was busy with something else, or behind. */
const mostCountedMs = 25;

/** Its functions get as far in a second of it on a busy machine as on an idle one: it slows down with them. */
export function pacedClock(rate: number): PacedClock {
  const startedAt = Date.now();
  let lookedAt = performance.now();
  let countedMs = 0;
  const sinceLook = () => Math.min(performance.now() - lookedAt, mostCountedMs);
  const looking = setInterval(() => {
    countedMs += sinceLook();
    lookedAt = performance.now();
  }, lookEveryMs);
  looking.unref();
  return { rate, now: () => new Date(startedAt + Math.round((countedMs + sinceLook()) * rate)) };
}
