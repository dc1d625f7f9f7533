/** A seeded random source. The same seed gives the same faults in the same order of calls. */
export interface Random {
  /** True with the given probability, from 0 (never) to 1 (always). It consumes one number even at 0 and 1. */
  chance(probability: number): boolean;
  /** An integer in [minimum, maximum]. */
  integer(minimum: number, maximum: number): number;
}

/** mulberry32: 32 bits of state. It is good enough to choose faults and must never make secrets. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    chance: (probability) => next() < probability,
    integer: (minimum, maximum) => minimum + Math.floor(next() * (maximum - minimum + 1)),
  };
}
