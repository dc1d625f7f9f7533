import type { SleepingClock } from "#shared/base/clock.ts";

/** How often something that failed is tried again, and how long it is left alone before. */
export interface RetryPolicy {
  /** Of which the last one's failure is thrown, for what went wrong; 1 where another try would not mend it. */
  readonly tries: (error: unknown) => number;
  /** How many tries a failure stands for, where somebody below has tried again before; 1 by default. */
  readonly triesIn?: (error: unknown) => number;
  /** The longest wait after the first failure. */
  readonly firstWaitMs: number;
  /** By which it grows with each further one; 2 by default. */
  readonly growth?: number;
  readonly longestWaitMs?: number;
  /** Full: any part of the wait, by chance. Two that met once do not meet again at the same instant. */
  readonly jitter: "full" | "none";
  /** Milliseconds that whoever failed asks to be left alone, instead of all that. */
  readonly askedWaitMs?: (error: unknown) => number | undefined;
  /** Epoch milliseconds of the clock: nothing is waited for that long. */
  readonly untilMs?: number;
}

export interface RetryMeans {
  readonly clock: SleepingClock;
  readonly random?: () => number;
}

/** @throws what the last try threw. */
export async function retrying<T>(
  policy: RetryPolicy,
  { clock, random = Math.random }: RetryMeans,
  work: () => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; ) {
    try {
      return await work();
    } catch (error) {
      tries += policy.triesIn?.(error) ?? 1;
      if (tries >= policy.tries(error)) throw error;
      const waitMs =
        policy.askedWaitMs?.(error) ?? waitAfter(tries, policy) * (policy.jitter === "full" ? random() : 1);
      if (policy.untilMs !== undefined && clock.now().getTime() + waitMs >= policy.untilMs) throw error;
      await clock.sleep(waitMs);
    }
  }
}

function waitAfter(tries: number, { firstWaitMs, growth = 2, longestWaitMs = Infinity }: RetryPolicy): number {
  return Math.min(longestWaitMs, firstWaitMs * growth ** (tries - 1));
}
