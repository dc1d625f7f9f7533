import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "#shared/base/clock.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const firstDelayMs = 100;
const maxDelayMs = 5_000;
const maxThrottleDelayMs = 30_000;

/** How often one request is sent again, by what went wrong. What is not listed is not retried in place. */
const maxRetries: Readonly<Record<string, number>> = {
  transient: 4,
  throttled: 10,
  dependency: 3,
  conflict: 6,
};

export interface RetryOptions {
  /** Epoch milliseconds of `clock` after which nothing is tried again. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Conflicts are retried only where the request carries no resourceVersion: there the same one may succeed. */
  readonly retryConflicts: boolean;
}

/**
 * Sends a request until it succeeds, fails for good or the deadline is near. Waits double from 100 ms to 5 s with full
 * jitter; a server's Retry-After is obeyed and counts as no failure.
 */
export async function withRetries<T>(options: RetryOptions, send: () => Promise<T>): Promise<T> {
  for (let retry = 0; ; retry += 1) {
    try {
      return await send();
    } catch (error) {
      const delayMs = error instanceof KubeError ? delayFor(error, retry, options) : undefined;
      if (delayMs === undefined || options.clock.now().getTime() + delayMs >= options.deadlineMs) throw error;
      await sleep(delayMs);
    }
  }
}

function delayFor(error: KubeError, retry: number, options: RetryOptions): number | undefined {
  if (!error.verdict.retryable || retry >= (maxRetries[error.class] ?? 0)) return undefined;
  if (error.class === "conflict" && !options.retryConflicts) return undefined;
  if (error.retryAfterSeconds !== undefined) return Math.min(error.retryAfterSeconds * 1000, maxThrottleDelayMs);
  return Math.random() * Math.min(maxDelayMs, firstDelayMs * 2 ** retry);
}
