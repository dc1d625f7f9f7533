import type { RetryPolicy } from "#shared/base/retrying.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const maxThrottleDelayMs = 30_000;

/** How often one request is sent again, by what went wrong. What is not listed is not retried in place. */
const maxRetries: Readonly<Record<string, number>> = {
  transient: 4,
  throttled: 10,
  dependency: 3,
};
const retriesWithConflicts = { ...maxRetries, conflict: 6 };

export interface KubeRetries {
  /** Epoch milliseconds of the clock after which nothing is tried again. */
  readonly deadlineMs: number;
  /** Conflicts are retried only where the request carries no resourceVersion: there the same one may succeed. */
  readonly retryConflicts: boolean;
}

/**
 * A request is sent until it succeeds, fails for good or the deadline is near. Waits double from 100 ms to 5 s with full
 * jitter; a server's Retry-After is obeyed instead.
 */
export function retryPolicy({ deadlineMs, retryConflicts }: KubeRetries): RetryPolicy {
  return {
    tries: (error) => 1 + retriesAfter(error, retryConflicts ? retriesWithConflicts : maxRetries),
    firstWaitMs: 100,
    longestWaitMs: 5_000,
    jitter: "full",
    askedWaitMs: retryAfterMs,
    untilMs: deadlineMs,
  };
}

function retriesAfter(error: unknown, most: Readonly<Record<string, number>>): number {
  return error instanceof KubeError && error.verdict.retryable ? (most[error.class] ?? 0) : 0;
}

function retryAfterMs(error: unknown): number | undefined {
  if (!(error instanceof KubeError) || error.retryAfterSeconds === undefined) return undefined;
  return Math.min(error.retryAfterSeconds * 1000, maxThrottleDelayMs);
}
