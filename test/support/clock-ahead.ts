import { type PacedClock, pacedClock } from "#local/base/paced-clock.ts";

/** A clock at `rate` that the test puts forward, so that no tick runs in the skipped time. */
export function clockAhead(rate: number): { readonly clock: PacedClock; pass(milliseconds: number): void } {
  const paced = pacedClock(rate);
  let aheadMs = 0;
  return {
    clock: { ...paced, now: () => new Date(paced.now().getTime() + aheadMs) },
    pass(milliseconds) {
      aheadMs += milliseconds;
    },
  };
}
