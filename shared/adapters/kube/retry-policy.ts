import { timeoutCode } from "#shared/adapters/kube/transport-errors.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { RetryPolicy } from "#shared/base/retrying.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

/** A waiting worker does nothing for other clusters and costs money. A longer wait is left to another check. */
const patienceMs = 15_000;

/** How often a request is repeated, by the class of the error. Other classes are not retried. */
const maxRetries: Readonly<Record<string, number>> = {
  transient: 4,
  throttled: 10,
  dependency: 3,
};
/**
 * The retry uses another connection, because the first may be dead. Each try with a silent server takes half a minute
 * of the worker's time.
 */
const maxSilentRetries = 1;
const retriesWithConflicts = { ...maxRetries, conflict: 6 };

/** How long one piece of work tolerates a server that keeps asking for fewer requests. */
export class Patience {
  readonly #clock: Clock;
  #askedSinceMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when the server answers. */
  renew(): void {
    this.#askedSinceMs = undefined;
  }

  /** Whether the request may be repeated: the server asks for no wait, or for no longer wait than is left. */
  lastsFor(error: unknown): boolean {
    if (!(error instanceof KubeError)) return true;
    const askedMs = retryAfterMs(error);
    if (error.class !== "throttled" && askedMs === undefined) return true;
    const now = this.#clock.now().getTime();
    this.#askedSinceMs ??= now;
    return now + (askedMs ?? 0) - this.#askedSinceMs <= patienceMs;
  }
}

export interface KubeRetries {
  /** The time on the clock, in epoch milliseconds, after which nothing is retried. */
  readonly deadlineMs: number;
  /** Conflicts are retried only for a request without resourceVersion, because the same request can then succeed. */
  readonly retryConflicts: boolean;
  /** Shared by all requests of a piece of work. */
  readonly patience: Patience;
}

/**
 * Repeats a request until it succeeds, fails for good, or the deadline is near. Waits double from 100 ms to 5 s with
 * full jitter. A Retry-After of the server takes precedence, here or in the next check.
 */
export function retryPolicy({ deadlineMs, retryConflicts, patience }: KubeRetries): RetryPolicy {
  const most = retryConflicts ? retriesWithConflicts : maxRetries;
  return {
    tries: (error) => (patience.lastsFor(error) ? 1 + retriesAfter(error, most) : 1),
    firstWaitMs: 100,
    longestWaitMs: 5_000,
    jitter: "full",
    askedWaitMs: retryAfterMs,
    untilMs: deadlineMs,
  };
}

function retriesAfter(error: unknown, most: Readonly<Record<string, number>>): number {
  if (!(error instanceof KubeError) || !error.verdict.retryable) return 0;
  return error.reason === timeoutCode ? maxSilentRetries : (most[error.class] ?? 0);
}

function retryAfterMs(error: unknown): number | undefined {
  if (!(error instanceof KubeError) || error.retryAfterSeconds === undefined) return undefined;
  return error.retryAfterSeconds * 1000;
}
