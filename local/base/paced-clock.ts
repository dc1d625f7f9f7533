import { setTimeout } from "node:timers/promises";
import type { SleepingClock } from "#shared/base/clock.ts";

/**
 * A clock that starts at the machine's time. It advances `rate` seconds per second in which this process could work.
 */
export interface PacedClock extends SleepingClock {
  readonly rate: number;
}

const measureEveryMs = 5;
/** The most that counts between two measurements. During the rest the machine was busy or this process was blocked. */
const mostCountedMs = 25;

/**
 * Creates a clock that slows down on a busy machine, so that code gets as far in one of its seconds as on an idle
 * machine.
 */
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

let measuring: NodeJS.Timeout | undefined;
let measuredAt = 0;
let countedMs = 0;

/** One measurement serves all clocks of this process, so that many clocks cost no more than one. */
function workedMs(): number {
  if (measuring === undefined) {
    measuredAt = performance.now();
    measuring = setInterval(measure, measureEveryMs).unref();
  }
  return countedMs + sinceMeasured();
}

function measure(): void {
  countedMs += sinceMeasured();
  measuredAt = performance.now();
}

function sinceMeasured(): number {
  return Math.min(performance.now() - measuredAt, mostCountedMs);
}
