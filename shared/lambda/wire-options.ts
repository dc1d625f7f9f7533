import type { SleepingClock } from "#shared/base/clock.ts";

/** What whoever wires a function may put in the place of the system's; Lambda puts nothing. */
export interface WireOptions {
  readonly clock?: SleepingClock;
  /** Where logs and metrics go, line by line. */
  readonly output?: (line: string) => void;
}
