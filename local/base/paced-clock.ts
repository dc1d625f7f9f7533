import { setTimeout } from "node:timers/promises";
import type { SleepingClock } from "#shared/base/clock.ts";

/** A clock that starts at the machine's time and runs `rate` seconds in each second that this process had for its work. */
export interface PacedClock extends SleepingClock {
  readonly rate: number;
}

const lookEveryMs = 5;
/** The most that counts between two looks: in the rest the machine was busy with something else, or behind. */
const mostCountedMs = 25;

/** Its functions get as far in a second of it on a busy machine as on an idle one: it slows down with them. */
export function pacedClock(rate: number): PacedClock {
  const startedAt = Date.now();
  const workedBefore = workedMs();
  const nowMs = () => startedAt + Math.round((workedMs() - workedBefore) * rate);
  return {
    rate,
    now: () => new Date(nowMs()),
    async sleep(milliseconds) {
      const until = nowMs() + milliseconds;
      for (let left = milliseconds; left > 0; left = until - nowMs()) await setTimeout(Math.ceil(left / rate));
    },
  };
}

let looking: NodeJS.Timeout | undefined;
let lookedAt = 0;
let countedMs = 0;

/** Of this process, for all of its clocks: a process that plays many worlds looks no more often than one with one. */
function workedMs(): number {
  if (looking === undefined) {
    lookedAt = performance.now();
    looking = setInterval(look, lookEveryMs).unref();
  }
  return countedMs + sinceLook();
}

function look(): void {
  countedMs += sinceLook();
  lookedAt = performance.now();
}

function sinceLook(): number {
  return Math.min(performance.now() - lookedAt, mostCountedMs);
}
