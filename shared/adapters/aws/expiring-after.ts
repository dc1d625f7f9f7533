import type { Clock } from "#shared/base/clock.ts";

/** Options of an LRUCache that forgets by the clock that it is given: what is as old as that is asked for anew. */
export function expiringAfter(milliseconds: number, clock: Clock) {
  return {
    // It keeps what is exactly as old as its `ttl`.
    ttl: milliseconds - 1,
    // Else it reads the clock once a millisecond of real time.
    ttlResolution: 0,
    perf: { now: () => clock.now().getTime() },
  };
}
