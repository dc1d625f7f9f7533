export interface Clock {
  now(): Date;
}

/** Waits in the time that it tells. */
export interface SleepingClock extends Clock {
  sleep(milliseconds: number): Promise<void>;
}
