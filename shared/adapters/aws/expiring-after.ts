import type { Clock } from "#shared/base/clock.ts";

/** Options of an LRUCache that uses the given clock. An entry of this age is no longer used. */
export function expiringAfter(milliseconds: number, clock: Clock) {
  return {
    // The cache keeps an entry whose age is exactly its `ttl`.
    ttl: milliseconds - 1,
    // With another value, the cache reads the clock once in a millisecond of real time.
    ttlResolution: 0,
    perf: { now: () => clock.now().getTime() },
  };
}
