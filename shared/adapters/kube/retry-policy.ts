import { timeoutCode } from "#shared/adapters/kube/transport-errors.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { RetryPolicy } from "#shared/base/retrying.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

/** The worker does nothing for other clusters meanwhile, and is paid for: what takes longer is another look's. */
const patienceMs = 15_000;

/** How often one request is sent again, by what went wrong. What is not listed is not retried in place. */
const maxRetries: Readonly<Record<string, number>> = {
  transient: 4,
  throttled: 10,
  dependency: 3,
};
/** Over another connection: the first may be dead. Each try of a silent server takes half a minute of its worker. */
const maxSilentRetries = 1;
const retriesWithConflicts = { ...maxRetries, conflict: 6 };

/** How long one piece of work goes on with a server that asks, of one request after the other, for fewer of them. */
export class Patience {
  readonly #clock: Clock;
  #askedSinceMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It answers. */
  renew(): void {
    this.#askedSinceMs = undefined;
  }

  /** Whether what failed may be waited for: it asks for nothing, or for no more than is left. */
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
  /** Epoch milliseconds of the clock after which nothing is tried again. */
  readonly deadlineMs: number;
  /** Conflicts are retried only where the request carries no resourceVersion: there the same one may succeed. */
  readonly retryConflicts: boolean;
  /** Of all requests of a piece of work. */
  readonly patience: Patience;
}

/**
 * A request is sent until it succeeds, fails for good or the deadline is near. Waits double from 100 ms to 5 s with full
 * jitter; a server's Retry-After is obeyed instead, here or by the next look.
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
