import type { SleepingClock } from "#shared/base/clock.ts";

/** How often a failed operation is retried, and how long to wait before. */
export interface RetryPolicy {
  /**
   * The number of tries for this error. After the last one, its error is thrown. 1 means that a retry would not help.
   */
  readonly tries: (error: unknown) => number;
  /** How many tries an error stands for, because a lower layer has already retried. Default: 1. */
  readonly triesIn?: (error: unknown) => number;
  /** The longest wait after the first failure. */
  readonly firstWaitMs: number;
  /** The factor by which each further wait grows. Default: 2. */
  readonly growth?: number;
  readonly longestWaitMs?: number;
  /** `full` waits a random part, so that two callers that met once do not meet again. */
  readonly jitter: "full" | "none";
  /** The wait that the failed side requests, in milliseconds. It replaces the computed wait. */
  readonly askedWaitMs?: (error: unknown) => number | undefined;
  /** The time on the clock, in epoch milliseconds, beyond which no wait lasts. */
  readonly untilMs?: number;
}

export interface RetryMeans {
  readonly clock: SleepingClock;
  readonly random?: () => number;
}

/** @throws the error of the last try. */
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
