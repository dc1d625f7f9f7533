import type { SleepingClock } from "#shared/base/clock.ts";

/** Replacements for the system's parts when a function is wired. Lambda replaces nothing. */
export interface WireOptions {
  readonly clock?: SleepingClock;
  /** Receives logs and metrics, line by line. */
  readonly output?: (line: string) => void;
}
