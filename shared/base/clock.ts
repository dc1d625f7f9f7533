export interface Clock {
  now(): Date;
}

/** Its waits follow its own time. */
export interface SleepingClock extends Clock {
  sleep(milliseconds: number): Promise<void>;
}
